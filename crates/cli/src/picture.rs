//! `--plot`: the figure of a recording as a file, and a page of all figures of a folder.

use super::failure::Failure;
use super::streams::write_whole;
use alphamf_eval::plot::{Figure, FrequencyScale, escape};
use anyhow::Context;
use clap::ValueEnum;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Frequency scale of a spectrogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum PlotScale {
    /// In proportion to frequency
    #[default]
    Linear,
    /// By perceived pitch
    Mel,
    /// By octaves, from 50 Hz
    Log,
}

impl From<PlotScale> for FrequencyScale {
    fn from(scale: PlotScale) -> Self {
        match scale {
            PlotScale::Linear => Self::Linear,
            PlotScale::Mel => Self::Mel,
            PlotScale::Log => Self::Log,
        }
    }
}

/// Whether figures can be written under this name: SVG or PNG.
pub fn is_known(path: &Path) -> bool {
    has_extension(path, "svg") || has_extension(path, "png")
}

fn has_extension(path: &Path, expected: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(expected))
}

/// Writes the figure in the format of the file's extension; replaces an existing file if `replace`.
pub fn write(figure: &Figure, path: &Path, replace: bool) -> anyhow::Result<()> {
    let bytes = if has_extension(path, "svg") { figure.svg().map(String::into_bytes) } else { figure.png() };
    write_whole(path, &bytes.with_context(|| Failure::Output(path.to_owned()))?, replace)
}

/// Name of the page of a folder's figures.
pub const INDEX: &str = "index.html";
/// Marks a page as written by this program.
const MARK: &str = "<meta name=generator content=\"denoise --plot\">";
const STYLE: &str = include_str!("picture/page.css");
/// Hides the figures whose names do not contain the text of the filter.
const SCRIPT: &str = include_str!("picture/page.js");

/// Writes the page of all figures in and below a folder, and replaces an older one. `None` if this program did not
/// write the existing page.
pub fn write_index(folder: &Path) -> anyhow::Result<Option<PathBuf>> {
    let page = folder.join(INDEX);
    let failed = || Failure::Output(page.clone());
    match File::open(&page) {
        Ok(file) => {
            let mut head = Vec::new();
            file.take(1_024).read_to_end(&mut head).with_context(failed)?;
            if !String::from_utf8_lossy(&head).contains(MARK) {
                return Ok(None);
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).with_context(failed),
    }
    let mut figures = Vec::new();
    find_figures(folder, Path::new(""), &mut figures).with_context(failed)?;
    figures.sort();
    write_whole(&page, index(folder, &figures).as_bytes(), true)?;
    Ok(Some(page))
}

/// Collects the paths of the SVG files in and below `folder/below`, relative to `folder`.
fn find_figures(folder: &Path, below: &Path, figures: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder.join(below))? {
        let entry = entry?;
        let (path, kind) = (below.join(entry.file_name()), entry.file_type()?);
        if kind.is_dir() {
            find_figures(folder, &path, figures)?;
        } else if has_extension(&path, "svg") {
            figures.push(path);
        }
    }
    Ok(())
}

/// Reads the `<desc>` of a figure, which is escaped. Empty if it contains markup, as pictures of other programs may.
fn description(path: &Path) -> String {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4_096).read_to_end(&mut head));
    let head = String::from_utf8_lossy(&head);
    let found = read.ok().and_then(|_| head.split_once("<desc>")?.1.split_once("</desc>"));
    found.map(|(text, _)| text).filter(|text| !text.contains('<')).unwrap_or_default().to_owned()
}

fn index(folder: &Path, figures: &[PathBuf]) -> String {
    let mut page = format!(
        "<!doctype html><html lang=en><head><meta charset=utf-8>{MARK}\
         <meta name=viewport content=\"width=device-width,initial-scale=1\"><title>Denoised recordings</title>\
         <style>{STYLE}</style></head><body><main><h1>Denoised recordings</h1>\
         <p><label>Show names with <input type=search id=filter></label> <span id=count>{0} of {0}</span></p><ul>\n",
        figures.len()
    );
    for figure in figures {
        let name = figure.with_extension("").display().to_string();
        let _ = writeln!(
            page,
            "<li><a href=\"{link}\"><img loading=lazy src=\"{link}\" alt=\"Waveforms, spectrograms, speech level and \
             SNR\"><b>{}</b></a><small>{}</small>",
            escape(&name),
            description(&folder.join(figure)),
            link = link(figure),
        );
    }
    page + &format!("</ul></main><script>{SCRIPT}</script></body></html>\n")
}

/// Relative URL of a file.
fn link(path: &Path) -> String {
    let parts = path.iter().map(|part| {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
        let bytes = part.as_encoded_bytes().iter();
        bytes
            .map(|b| if plain(b) { char::from(*b).to_string() } else { format!("%{b:02X}") })
            .collect::<String>()
    });
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_of_foreign_pictures_is_not_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        for (found, expected) in [
            ("1:02, 16 kHz &amp; mono", "1:02, 16 kHz &amp; mono"),
            ("<script>alert(1)</script>", ""),
            ("a<![CDATA[b]]>", ""),
        ] {
            let path = folder.path().join("a.svg");
            fs::write(&path, format!("<svg><desc>{found}</desc></svg>")).unwrap();
            assert_eq!(description(&path), expected);
        }
    }
}
