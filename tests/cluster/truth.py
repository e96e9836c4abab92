"""truth.py - what really happened, as etcd's own history tells, and whether everybody was told the same.

  T1 a write that was acknowledged is in the history, at the revision that was told, with its content.
  T2 a write that was refused is not; one whose outcome is not known is there once or not at all.
  T3 nothing is there that nobody asked for, and no write is there twice.
  T4 a write that named a revision replaced exactly that one.
  T5 a list is the state at its revision, which is not before what was acknowledged when it was asked for.
  T6 a watcher saw exactly the changes that its selector picks, in order, whichever servers it came by.
"""
import bisect
import re

from load import PATH  # noqa: F401  (where the objects are)

TOKEN = re.compile(rb"\[(t\d+\.\d+)\|([abc]?)\](x*)")


def brief(text):
    """Without the bytes that only make a value longer."""
    return re.sub(r"x{9,}", lambda m: f"x*{len(m.group(0))}", str(text))


class Change:
    def __init__(self, rev, name, before, after):
        self.rev, self.name, self.before, self.after = rev, name, before, after  # content: (text, tier)


class Truth:
    def __init__(self, history, prefix):
        self.changes, state = [], {}
        self.by_token, self.doubles = {}, []
        self.previous = {}  # revision of a change -> that of what it replaced
        newest = {}
        for rev, key, value in history:
            name = key[len(prefix):]
            after = None
            if value is not None:
                found = TOKEN.search(value)
                if not found:
                    continue
                token, tier = found.group(1).decode(), found.group(2).decode()
                after = (found.group(0).decode(), tier)
                if token in self.by_token:
                    self.doubles.append(token)
                self.by_token[token] = rev
            self.changes.append(Change(rev, name, state.get(name), after))
            self.previous[rev] = newest.get(name, 0)
            state[name], newest[name] = after, rev
        self.revs = [c.rev for c in self.changes]
        self.cache = {}

    def state_at(self, rev):
        """Names with (revision, text)."""
        state = {}
        for c in self.changes[:bisect.bisect_right(self.revs, rev)]:
            if c.after is None:
                state.pop(c.name, None)
            else:
                state[c.name] = (c.rev, c.after[0])
        return state

    def expected(self, watcher):
        key = (watcher.selector.query, watcher.start_rev)
        if key not in self.cache:
            self.cache[key] = list(self.filtered(watcher.start_rev, watcher.selector.matches))
        return self.cache[key]

    def filtered(self, after, matches):
        for c in self.changes[bisect.bisect_right(self.revs, after):]:
            was = c.before is not None and matches(c.name, c.before[1])
            now = c.after is not None and matches(c.name, c.after[1])
            if was and now:
                yield "MODIFIED", c.name, c.rev, c.after[0]
            elif now:
                yield "ADDED", c.name, c.rev, c.after[0]
            elif was:
                yield "DELETED", c.name, c.rev, c.before[0]

    # ---- the judgement: each yields what is wrong ----

    def check_writes(self, writes):
        asked = {w.token: w for w in writes}
        for w in writes:
            there = self.by_token.get(w.token)
            if w.verb == "delete":
                continue
            if w.outcome == "acked" and there != w.rev:
                yield f"T1 acknowledged, but the history has it at {there}: {w}"
            if w.outcome == "refused" and there:
                yield f"T2 refused, but the history has it at {there}: {w}"
            if w.base and there and self.previous[there] != w.base:
                yield f"T4 it was to replace {w.base} and replaced {self.previous[there]}: {w}"
        for token in self.doubles:
            yield f"T3 twice in the history: {asked.get(token, token)}"
        for token in self.by_token:
            if token not in asked:
                yield f"T3 nobody asked for {token}"
        yield from self.check_deletes(writes)

    def check_deletes(self, writes):
        """They have no token: counted by name."""
        for name in {w.name for w in writes}:
            mine = [w for w in writes if w.name == name and w.verb == "delete"]
            acked = sum(w.outcome == "acked" for w in mine)
            unknown = sum(w.outcome == "unknown" for w in mine)
            there = sum(c.name == name and c.after is None for c in self.changes)
            if not acked <= there <= acked + unknown:
                yield f"T1 {name} was deleted {there} times; {acked} acknowledged, {unknown} not known"

    def check_lists(self, lists):
        for how, floor, at, content in lists:
            if at < floor:
                yield f"T5 {how}: of revision {at}, though {floor} had been acknowledged"
            want = self.state_at(at)
            if content != want:
                names = [n for n in {*content, *want} if content.get(n) != want.get(n)]
                yield (f"T5 {how}: not the state at {at}: "
                       + ", ".join(f"{n}: {content.get(n)} is not {want.get(n)}" for n in names[:3]))

    def check_watcher(self, w):
        if w.error:
            yield f"T6 {w}: {type(w.error).__name__}: {w.error}"
        for i, want in enumerate(self.expected(w)):
            if i >= len(w.seen):
                yield f"T6 {w}: still waits for event {i} of {len(self.expected(w))}, {want}; at {w.last}; ends: {w.ends[-5:]}"
                return
            if w.seen[i] != want:
                yield f"T6 {w}: event {i}: expected {want}, got {w.seen[i]}; ends: {w.ends[-5:]}"
                return
        if len(w.seen) > len(self.expected(w)):
            yield f"T6 {w}: saw more than there was: {w.seen[len(self.expected(w))]}"
