"""The table of scores of an interrupted run, without any recogniser."""

from types import SimpleNamespace

import transcription


def test_scores_have_one_head_however_often_a_run_is_interrupted(tmp_path):
    (tmp_path / transcription.LIST).write_text("file,sentence,snr_db,kind,text\n")
    nothing = SimpleNamespace(out=tmp_path, sentences=1, whisper=None, moonshine=None, sphinx=False)
    for _ in range(2):
        transcription.score(nothing, {"systems": []})
    assert (tmp_path / transcription.SCORES).read_text().count("recogniser") == 1


def test_errors_are_the_least_changes_of_words():
    expected = transcription.words("Two colours, okay?")
    assert expected == ["two", "colors", "ok"]
    assert [transcription.distance(expected, transcription.words(found)) for found in ("2 colors ok", "two ok", "", "a b c d")] == [0, 1, 3, 4]
