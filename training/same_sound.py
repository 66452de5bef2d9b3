#!/usr/bin/env python3
"""Finds copies of recordings by their sound: same_sound.py --data DATA FOLDER...

Lists all recordings in FOLDERs (of sound files, or of prepare.py) that share a second with a held-out recording (KEPT in prepare.py), which
prepare.py leaves out. A copy may differ in name, gain, sample rate, codec, start and end.

The features are differences, over time and over neighbouring bands, of the levels of 24 bands in frames of 64 ms, every 32 ms. They do not
depend on gain and colouring, and steady noises differ in them. The score of two sections is the correlation of these differences, which is
reduced for sections with few changes: two clicks in silence are similar by chance. Sections last 0.96 s, or 2.75 s for sounds of few
bands. Shorter recordings count as sections with few changes.

Comparing all sections would take days. Therefore every 0.48 s of the held-out recordings gives a tile of 64 cosine coefficients. One matrix
product compares all tiles with all positions of the other recordings, and sections are compared only where coefficients correlate.

Measured with 545 held-out recordings (77 min) and a threshold of 0.5:
- Copies. Of 1,123 parts of 1 to 5 s (Opus at 12 to 24 kbit/s, MP3 at 16 to 48, AAC, Vorbis, ADPCM, 8 kHz; gains of 0 to -20 dB) 97.9 % are
  found: 95 % of 1 s, 98 % of 1.2 s, 99 % of 2 s and more. Missed are hums, and sounds above the bandwidth of a codec. Of 97 parts with
  8 bits per sample at these gains, some of them rounding noise only, 77 % are found. Of 1,088 whole recordings (Opus and MP3 at 16 kbit/s, MP3
  at 24, Vorbis) all are found but one. Wrong matches score at most 0.25.
- Training recordings: 36,719 in 29 h. All 104 with a file of the development sets are found. Other games have copies of 0.53
  and more, confirmed by their waveforms. Of all others one cry has 0.50, its second copy 0.48, the rest 0.44 and less.
- Synthetic noises, 60 of 30 s against 180 of 20 s, score at most 0.32 (white), 0.30 (pink), 0.37 (brown), 0.43 (hums), 0.50 (a band of 400 Hz).
- Time: 140 s on one core for 29 h, excluding decoding.
"""

import argparse
from collections import namedtuple

import numpy as np

from options import existing_folder, run

RATE = 16000  # Hz
WINDOW, HOP = 1024, 512
PHASES = 4  # Factor on the frame rate of development recordings, so that one frame is within 4 ms of every offset.
BANDS, LOWEST, HIGHEST = 24, 100, 7000  # Hz
FLOOR = 1e-4  # Relative to the loudest band within half a second; codecs drop weaker bands.
LARGEST = 8.0  # Limit of changes, dB, so that a click does not outweigh a second.
SECTIONS = 28, 84  # changes: 0.96 s, and 2.75 s for sounds of few bands
LONGEST = max(SECTIONS)
TILE, ORDERS = 15, 8  # frames; coefficients over time and over bands
NOMINATED = 0.5  # Minimum correlation of coefficients for a comparison of sections. Lower values find hardly more, in more time.
PROMISING = 0.15  # Minimum score for a comparison at other offsets.
FRAMES, CHANGES = 18, 120  # Frames and changes of equal size that a section needs for its full score.
SAME = 0.5  # Minimum score of copies.
FRAMES_AT_ONCE, COLUMNS_AT_ONCE, PAIRS_AT_ONCE, SAMPLES_AT_ONCE = 4096, 512, 1024, 60 * RATE

Match = namedtuple("Match", "score name at start")  # name and second of the development recording, second of the other one


def described(match):
    return f"from {match.start:.1f} s on as {match.name} from {match.at:.1f} s on, score {match.score:.2f}"


def band_edges():
    """Edges of the bands, bins: linear at low frequencies, logarithmic at high ones."""
    return np.round((np.geomspace(LOWEST + 300, HIGHEST + 300, BANDS + 1) - 300) * WINDOW / RATE).astype(int)


def highest_near(values, reach):
    """Running maximum over `reach` values on either side."""
    values, width = np.pad(values, reach), 1
    while width <= 2 * reach:
        more = min(width, 2 * reach + 1 - width)
        values = np.maximum(values[:-more], values[more:])
        width += more
    return values


def levels_of(x, hop=HOP):
    """Levels of bands, dB (frames, BANDS)."""
    x = np.pad(np.asarray(x, np.float32), (0, max(0, WINDOW - len(x))))
    frames = np.lib.stride_tricks.sliding_window_view(x, WINDOW)[::hop]
    edges, window = band_edges(), np.hanning(WINDOW).astype(np.float32)
    power = np.empty((len(frames), BANDS), np.float32)
    for i in range(0, len(frames), FRAMES_AT_ONCE):
        bins = np.fft.rfft(frames[i : i + FRAMES_AT_ONCE] * window)[:, : edges[-1]]
        power[i : i + FRAMES_AT_ONCE] = np.add.reduceat(bins.real**2 + bins.imag**2, edges[:-1], axis=1)
    # Compensates the typical slope of -6 dB per octave, so that the floor does not hide high bands.
    power *= ((edges[1:] + edges[:-1]) ** 2 / np.diff(edges)).astype(np.float32)
    loudest = highest_near(power.max(1), RATE // 2 // hop)
    return 10 * np.log10(power + FLOOR * loudest[:, None] + np.float32(1e-20))


def changes_of(levels):
    """Differences over time and over neighbouring bands, padded with zeros by the length of a section."""
    changes = np.clip(np.diff(np.diff(levels, axis=0), axis=1), -LARGEST, LARGEST)
    return np.pad(changes, ((LONGEST, LONGEST), (0, 0)))


def cosines(n):
    orders = np.arange(1, ORDERS + 1)[:, None]
    return np.cos(np.pi * orders * (np.arange(n) + 0.5) / n).astype(np.float32)


def coefficients_of(levels):
    """Cosine coefficients of TILE frames, starting at every frame."""
    if len(levels) < TILE:
        return np.zeros((0, ORDERS**2), np.float32)
    over_bands = levels @ cosines(BANDS).T
    return (np.lib.stride_tricks.sliding_window_view(over_bands, TILE, axis=0) @ cosines(TILE).T).reshape(-1, ORDERS**2)


def unit(rows):
    return rows / (np.sqrt((rows**2).sum(1, keepdims=True)) + 1e-3)


def sums(values, section):
    """Sums over every section: (pairs, changes) to (pairs, sections)."""
    total = np.cumsum(values, 1)
    total[:, section:] -= total[:, :-section].copy()
    return total[:, section - 1 :]


def scores(a, b, power_a, power_b, section):
    """Scores of the most similar sections at the same position in a and b (pairs, changes, bands); powers are sums over bands."""
    products = a * b
    both = (power_a > 0) & (power_b > 0)
    weights = np.sqrt(power_a * power_b)
    over = lambda values: sums(values, section)
    norm = np.sqrt(over(power_a * both) * over(power_b * both)) + 1
    frames = over(weights) ** 2 / (over(weights**2) + 1)
    changes = over(np.abs(products).sum(2)) ** 2 / (over(np.einsum("ijk,ijk->ij", products, products)) + 1)
    known = np.minimum(frames / FRAMES, changes / CHANGES)
    return (over(products.sum(2)) / norm * np.sqrt(np.minimum(1, known))).max(1)


class Laid:
    """Features of concatenated recordings: changes; and coefficients, with the recording, frame and position in `changes` of each."""

    def __init__(self, recordings):
        levels = [levels_of(x) for x in recordings]
        changes = [changes_of(frames) for frames in levels]
        coefficients = [coefficients_of(frames) for frames in levels]
        first = LONGEST + np.cumsum([0] + [len(c) for c in changes[:-1]])
        counts = [len(c) for c in coefficients]
        self.changes, self.coefficients = np.concatenate(changes), np.concatenate(coefficients)
        self.owner = np.repeat(np.arange(len(recordings)), counts)
        self.frame = np.concatenate([np.arange(n) for n in counts])
        self.place = first[self.owner] + self.frame


class Kept:
    """Features of the held-out recordings, (name, samples) at RATE."""

    def __init__(self, recordings):
        self.names, self.first, end = [], [], 0
        changes, tiles, at = [np.zeros((PHASES, 0, BANDS - 1), np.float32)], [coefficients_of([])], [np.zeros(0, int)]
        for name, x in recordings:
            dense = levels_of(np.pad(x, (0, HOP)), HOP // PHASES)
            phases = [dense[i : len(dense) // PHASES * PHASES : PHASES] for i in range(PHASES)]
            self.names.append(name)
            self.first.append(end + LONGEST)
            tiles.append(coefficients_of(phases[0])[::TILE])
            at.append(end + LONGEST + TILE * np.arange(len(tiles[-1])))
            changes.append(np.stack([changes_of(levels) for levels in phases]))
            end += changes[-1].shape[1]
        self.changes = np.concatenate(changes, 1)
        self.power = (self.changes**2).sum(2)
        tiles = np.concatenate(tiles)
        self.scale = np.sqrt((tiles**2).sum(0) / max(1, len(tiles))) + 1e-3
        # Silent tiles would match everything.
        loud = ((tiles / self.scale) ** 2).sum(1) > 1
        self.tiles, self.at = unit(tiles[loud] / self.scale), np.concatenate(at)[loud]

    def nominated(self, coefficients):
        """Pairs of a position in `changes` and a row of coefficients whose sections are to be compared."""
        rows, at, own = unit(coefficients / self.scale), [np.zeros(0, int)], [np.zeros(0, int)]
        for i in range(0, len(rows), COLUMNS_AT_ONCE):
            part = rows[i : i + COLUMNS_AT_ONCE]
            tile, row = np.divmod(np.flatnonzero(self.tiles @ part.T > NOMINATED), len(part))
            at.append(self.at[tile])
            own.append(row + i)
        return np.concatenate(at), np.concatenate(own)

    def scores(self, at, changes, own, phases, section):
        """Scores of pairs of positions in `self.changes` and in `changes`; the maximum over offsets, in phases."""
        power, best = (changes**2).sum(1), np.zeros(len(at), np.float32)
        around = np.arange(TILE - 1 - section, section)  # sections that contain the tile
        for i in range(0, len(at), PAIRS_AT_ONCE):
            part = slice(i, i + PAIRS_AT_ONCE)
            mine = own[part, None] + around
            for hops, phase in (divmod(phase, PHASES) for phase in phases):
                its = at[part, None] + around + hops
                score = scores(changes[mine], self.changes[phase][its], power[mine], self.power[phase][its], section)
                best[part] = np.maximum(best[part], score)
        return best

    def best(self, recordings):
        """The best match of every recording, or `None`."""
        mine = Laid(recordings)
        at, row = self.nominated(mine.coefficients)
        own = mine.place[row]
        score = self.scores(at, mine.changes, own, [0], SECTIONS[0])
        near = np.flatnonzero(score > PROMISING)
        for section in SECTIONS:
            offsets = range(-PHASES // 2, PHASES // 2 + 1)
            score[near] = np.maximum(score[near], self.scores(at[near], mine.changes, own[near], offsets, section))
        found = [None] * len(recordings)
        owner, frame = mine.owner[row], mine.frame[row]
        order = np.lexsort((score, owner))
        for i in order[np.diff(owner[order], append=-1) != 0]:  # the last of every owner has its highest score
            name = np.searchsorted(self.first, at[i], side="right") - 1
            seconds = (float(frames * HOP / RATE) for frames in (at[i] - self.first[name], frame[i]))
            found[owner[i]] = Match(float(score[i]), self.names[name], *seconds)
        return found

    def compared(self, recordings, least=SAME):
        """(key, match or `None`) of (key, samples), in batches, as numpy is slow for short recordings."""
        keys, waiting, samples = [], [], 0

        def done():
            return zip(keys, (match if match and match.score >= least else None for match in self.best(waiting)))

        for key, x in recordings:
            keys.append(key)
            waiting.append(x)
            samples += len(x)
            if samples >= SAMPLES_AT_ONCE:
                yield from done()
                keys, waiting, samples = [], [], 0
        if waiting:
            yield from done()


def main():
    import prepare  # Imported here, as it imports this module.

    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--data", type=existing_folder, required=True)
    a.add_argument("folders", type=existing_folder, nargs="+")
    a = a.parse_args()
    kept = Kept(prepare.kept_apart(a.data))
    found = count = 0
    for folder in a.folders:
        before = count
        for name, match in kept.compared(prepare.recordings_in(folder)):
            count += 1
            if match:
                found += 1
                print(f"{name}: {described(match)}", flush=True)
        if count == before:
            raise SystemExit(f"{folder}: no recordings")
    print(f"{found} of {count} recordings have the sound of {len(kept.names)} development recordings")


if __name__ == "__main__":
    run(main)
