#!/usr/bin/env python3
"""Runs `coax` with the same arguments: `summarize DIR [--json F] [-q]`, `diff A B [--json F] [-q]`.

coax is looked for in $COAX, then in target/release of the repository that this file lies in, then in $PATH.
"""

import os
import shutil
import sys

HOW_TO_INSTALL = """\
  build it in a clone of the coax repository: cargo build --release
  or install it from there:                   cargo install --path .
  or name the program:                        export COAX=/path/to/coax"""


def find():
    here = os.path.dirname(os.path.realpath(__file__))
    built = os.path.join(here, "..", "..", "..", "target", "release", "coax")
    built = os.path.normpath(built) if os.access(built, os.X_OK) else None
    return os.environ.get("COAX") or built or shutil.which("coax")


def contract(arguments):
    """A coax.toml changes what fails; callers of this script rely on the plain contract."""
    return arguments[:1] + ["--no-config"] + arguments[1:] if arguments[:1] == ["diff"] else arguments


def main():
    program = find()
    reason = "coax was not found in $COAX, target/release or $PATH"
    if program:
        try:
            os.execv(program, [program] + contract(sys.argv[1:]))
        except OSError as error:
            reason = "%s cannot be run: %s" % (program, error.strerror)
    print("error: %s\n%s" % (reason, HOW_TO_INSTALL), file=sys.stderr)
    print("RESULT: NOT TRUSTWORTHY")
    return 2


if __name__ == "__main__":
    sys.exit(main())
