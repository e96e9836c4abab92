# Completion of vigil for bash: commands, flags, and from the server kinds, names and namespaces.

_vigil_ask() { command vigil "$@" 2>/dev/null </dev/null; }

# The flags so far that say which server and namespace, so that it is asked the same way.
_vigil_where() {
    local i
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -n | --namespace | -s | --server | --kubeconfig | --context | --token | \
            --certificate-authority | --client-certificate | --client-key)
            printf '%s\n' "${COMP_WORDS[i]}" "${COMP_WORDS[i + 1]}"
            i=$((i + 1))
            ;;
        --insecure-skip-tls-verify) printf '%s\n' "${COMP_WORDS[i]}" ;;
        esac
    done
}

_vigil() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} list='' i
    local operands=() where=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -[nlos] | --namespace | --selector | --field-selector | --output | --server | --kubeconfig | \
            --context | --token | --certificate-authority | --client-certificate | --client-key)
            i=$((i + 1))
            ;;
        -*) ;;
        *) operands+=("${COMP_WORDS[i]}") ;;
        esac
    done
    mapfile -t where < <(_vigil_where)
    COMPREPLY=()
    case $before in
    -o | --output) list='table wide name json yaml' ;;
    -n | --namespace) list=$(_vigil_ask get namespaces -o name "${where[@]}" | sed 's|.*/||') ;;
    --kubeconfig | --certificate-authority | --client-certificate | --client-key)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
        ;;
    -l | --selector | --field-selector | -s | --server | --context | --token) return ;;
    *)
        if [[ $word == -* ]]; then
            list='--namespace --all-namespaces --selector --field-selector --output --watch --kubeconfig
                --context --server --token --certificate-authority --client-certificate --client-key
                --insecure-skip-tls-verify --help --version'
        elif ((${#operands[@]} == 0)); then
            list='get watch events top kinds backup restore migrate bench help'
        elif [[ ${operands[0]} == help ]]; then
            list='get watch events top kinds backup restore migrate bench'
        elif [[ ${operands[0]} == @(backup|restore|migrate) ]]; then
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
            return
        elif [[ ${operands[0]} == bench ]]; then
            list='fill list page fanout idle churn latency slow mixed relist all report'
        elif [[ ${operands[0]} != @(get|watch) ]]; then
            return
        elif ((${#operands[@]} == 1)); then
            list=$(_vigil_ask kinds "${where[@]}" | awk 'NR > 1 { print $1 }')
        elif ((${#operands[@]} == 2)); then
            list=$(_vigil_ask get "${operands[1]}" -o name "${where[@]}" | sed 's|.*/||')
        fi
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$list" -- "$word")
}
complete -F _vigil vigil
