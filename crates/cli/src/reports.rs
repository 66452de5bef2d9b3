//! The reports of a recording, beside its result.

use super::record::WantedReport;
use super::recording::SpeechFormat;
use alphamf_eval::plot::FrequencyScale;
use std::path::Path;

/// The requested reports, each with the path of its file, or of the folder of such files.
#[derive(Debug, Clone, Copy)]
pub struct Reports<P> {
    pub residual: Option<P>,
    /// The figure, and its frequency scale.
    pub plot: Option<(P, FrequencyScale)>,
    pub levels: Option<P>,
    /// The speech track, and its format.
    pub speech: Option<(P, SpeechFormat)>,
    pub stats: Option<P>,
}

impl<P> Reports<P> {
    /// Maps the paths of the reports. `path` also receives the extension of a file, none for audio.
    pub fn map<'a, Q>(&'a self, path: impl Fn(&'a P, Option<&'static str>) -> Q) -> Reports<Q> {
        let Self { residual, plot, levels, speech, stats } = self;
        Reports {
            residual: residual.as_ref().map(|of| path(of, None)),
            plot: plot.as_ref().map(|(of, scale)| (path(of, Some("svg")), *scale)),
            levels: levels.as_ref().map(|of| path(of, Some("csv"))),
            speech: speech.as_ref().map(|(of, format)| (path(of, Some(format.ending())), *format)),
            stats: stats.as_ref().map(|of| path(of, Some("json"))),
        }
    }
}

impl<P: AsRef<Path>> Reports<P> {
    /// Iterates over all reports, each with the options that affect it alone.
    pub fn wanted(&self) -> impl Iterator<Item = WantedReport<'_>> {
        fn wanted<P: AsRef<Path>>(path: &P, options: String) -> WantedReport<'_> {
            WantedReport { path: path.as_ref(), options }
        }
        fn plain<P: AsRef<Path>>(path: &Option<P>) -> Option<WantedReport<'_>> {
            path.as_ref().map(|path| wanted(path, String::new()))
        }
        let Self { residual, plot, levels, speech, stats } = self;
        let plot = plot.as_ref().map(|(path, scale)| wanted(path, format!("{scale:?}")));
        let speech = speech.as_ref().map(|(path, format)| wanted(path, format!("{format:?}")));
        [plain(residual), plot, plain(levels), speech, plain(stats)].into_iter().flatten()
    }

    /// All paths.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.wanted().map(|report| report.path)
    }
}
