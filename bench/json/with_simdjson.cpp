// with_simdjson.cpp - simdjson's DOM with one reused parser and padded documents, as it likes best.
// It checks UTF-8 and converts numbers; it neither keeps number text nor looks for duplicate keys.
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <simdjson.h>
#pragma GCC diagnostic pop

#include "bench_json.h"

namespace
{

struct state {
    simdjson::dom::parser parser;
    std::vector<simdjson::dom::parser> parsers; // one per kept tree
    std::vector<simdjson::dom::element> trees;
};

void *open_simdjson(const struct docs *docs)
{
    auto *s = new state;
    s->parsers = std::vector<simdjson::dom::parser>(docs->n);
    s->trees.resize(docs->n);
    for (size_t i = 0; i < docs->n; i++) {
        auto error = s->parsers[i].parse(docs->v[i].p, docs->v[i].n, false).get(s->trees[i]);
        if (error) {
            delete s;
            return nullptr;
        }
    }
    return s;
}

size_t run_parse(void *p, const struct docs *docs)
{
    auto *s = static_cast<state *>(p);
    size_t sum = 0;
    for (size_t i = 0; i < docs->n; i++) {
        simdjson::dom::object root;
        if (s->parser.parse(docs->v[i].p, docs->v[i].n, false).get(root))
            return SIZE_MAX;
        sum += root.size();
    }
    return sum;
}

size_t run_write(void *p, const struct docs *docs)
{
    auto *s = static_cast<state *>(p);
    size_t sum = 0;
    for (size_t i = 0; i < docs->n; i++) {
        simdjson::internal::string_builder<> out;
        out.append(s->trees[i]);
        sum += out.str().size();
    }
    return sum;
}

void close_simdjson(void *p)
{
    delete static_cast<state *>(p);
}

} // namespace

extern "C" const struct contender with_simdjson = {
    "simdjson", open_simdjson, {run_parse, run_write, nullptr}, close_simdjson};
