"""Writes data and reference moments of posteriors from a checkout of stan-dev/posteriordb: prepare.py CHECKOUT FOLDER."""

import io
import json
import math
import sys
import zipfile
from pathlib import Path

POSTERIORS = """
arK-arK arma-arma11 bball_drive_event_0-hmm_drive_0 diamonds-diamonds earnings-earn_height earnings-logearn_interaction
eight_schools-eight_schools_noncentered garch-garch11 gp_pois_regr-gp_pois_regr gp_pois_regr-gp_regr
hmm_example-hmm_example hudson_lynx_hare-lotka_volterra kidiq-kidscore_interaction kidiq-kidscore_momhsiq
kidiq_with_mom_work-kidscore_interaction_c2 kidiq_with_mom_work-kidscore_mom_work kilpisjarvi_mod-kilpisjarvi
low_dim_gauss_mix-low_dim_gauss_mix mesquite-logmesquite_logvash mesquite-mesquite nes1976-nes nes2000-nes sblrc-blr
sblri-blr
""".split()


def unzipped(path):
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        return json.loads(archive.read(archive.namelist()[0]))


def moments(values):
    """Mean and standard deviation, and the standard errors of both; the reference's draws are thinned to independence."""
    n = len(values)
    mean = math.fsum(values) / n
    second = math.fsum((x - mean) ** 2 for x in values) / n
    fourth = math.fsum((x - mean) ** 4 for x in values) / n
    deviation = math.sqrt(second * n / (n - 1))
    return mean, deviation, deviation / math.sqrt(n), math.sqrt((fourth - second**2) / n) / (2 * deviation)


def main(checkout, folder):
    root, folder = Path(checkout) / "posterior_database", Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in POSTERIORS:
        about = json.loads((root / "posteriors" / f"{name}.json").read_text())
        data = unzipped(root / "data" / "data" / f"{about['data_name']}.json.zip")
        reference = about["reference_posterior_name"]
        chains = unzipped(root / "reference_posteriors" / "draws" / "draws" / f"{reference}.json.zip")
        names = list(chains[0])
        table = [moments([x for chain in chains for x in chain[parameter]]) for parameter in names]
        columns = dict(zip(("mean", "deviation", "mean_error", "deviation_error"), map(list, zip(*table))))
        (folder / f"{name}.json").write_text(json.dumps({"data": data, "names": names, **columns}))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
