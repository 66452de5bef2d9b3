"""What a script says when it refuses, for the tests of eval/, too."""

import sys

import pytest


@pytest.fixture
def ended(monkeypatch, capsys):
    """Runs a script that must fail with one line, which is returned."""

    def run(main, *words):
        import options

        monkeypatch.setattr(sys, "argv", ["script.py", *map(str, words)])
        with pytest.raises(SystemExit) as refused:
            options.run(main)
        # Options are refused by their parser, after the usage.
        return capsys.readouterr().err.splitlines()[-1] if refused.value.code == 2 else str(refused.value)

    return run
