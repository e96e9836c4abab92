"""Turns the notation of src/server/kinds/schema/ into constant C tables.

    python3 tools/schema OUT.c FILE.schema ...

docs/kinds.md describes the notation. What does not fit together is told with file and line."""
import os
import sys

sys.dont_write_bytecode = True

import rows
import tables
from notation import Reader
from wrong import Wrong


def main():
    reader = Reader()
    try:
        for path in sys.argv[2:]:
            reader.read(path)
        types = reader.finish()
        with open(sys.argv[1] + '.new', 'w', encoding='utf-8') as out:
            writer = tables.write(out, reader, types)
            rows.write(writer, reader, types)
        os.replace(sys.argv[1] + '.new', sys.argv[1])
    except Wrong as wrong:
        sys.exit(str(wrong))


if __name__ == '__main__':
    main()
