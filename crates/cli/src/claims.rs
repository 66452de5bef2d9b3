//! Rejects outputs that would overwrite an input, another output, or a file that exists.

use super::failure::{Failure, usage};
use super::letters::{self, folded};
use super::record::State;
use super::streams::{is_standard, name};
use alphamf_files::output::place;
use alphamf_files::{Error, WriteError};
use anyhow::anyhow;
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

/// The files of a run, identified by device and inode (or place) and not by spelling.
#[derive(Debug)]
pub struct Claims {
    read: HashMap<Identity, PathBuf>,
    written: HashMap<Identity, PathBuf>,
    /// First spelling of each place, by its case-folded path.
    places: HashMap<PathBuf, PathBuf>,
    /// Whether a folder is case-insensitive.
    is_case_insensitive: fn(&Path) -> bool,
}

impl Default for Claims {
    fn default() -> Self {
        let (read, written, places) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { read, written, places, is_case_insensitive: letters::is_case_insensitive }
    }
}

/// Names of standard output as a file.
const STANDARD_OUTPUT: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// The identity that all paths to one file share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Identity {
    /// Device and inode of an existing file or folder.
    #[cfg(unix)]
    Node(u64, u64),
    /// Path of a file that exists or will be written.
    Place(PathBuf),
}

impl Identity {
    /// The identity of an existing file.
    fn of_existing(path: &Path, found: &Metadata) -> Self {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let _ = path;
            Self::Node(found.dev(), found.ino())
        }
        #[cfg(not(unix))]
        {
            let _ = found;
            Self::Place(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()))
        }
    }

    /// The identity of a file, existing or not; none for a device, a pipe or a folder, which are not replaced.
    fn of(path: &Path) -> Option<Self> {
        match fs::metadata(path) {
            Ok(found) => found.is_file().then(|| Self::of_existing(path, &found)),
            Err(_) => Some(Self::Place(place(path))),
        }
    }

    /// The place of the file at `path`.
    fn place(&self, path: &Path) -> PathBuf {
        let known = match self {
            Self::Place(place) => Some(place.clone()),
            #[cfg(unix)]
            Self::Node(..) => None,
        };
        known.unwrap_or_else(|| place(path))
    }
}

impl Claims {
    /// Registers an input, standard input if it is `-`.
    pub fn read(&mut self, path: &Path) {
        // Standard input may be a file, too.
        let real = if is_standard(path) { Path::new("/dev/stdin") } else { path };
        if let Some(identity) = Identity::of(real) {
            let place = identity.place(real);
            self.places.entry(folded(&place)).or_insert_with(|| place.clone());
            for identity in [identity, Identity::Place(place)] {
                self.read.entry(identity).or_insert_with(|| name(path, "standard input").to_owned());
            }
        }
    }

    /// The name under which an input is registered.
    pub fn registered(&self, path: &Path) -> Option<&Path> {
        self.read.get(&Identity::of(path)?).map(PathBuf::as_path)
    }

    /// Registers an output, standard output for `-` or one of [`STANDARD_OUTPUT`]. All inputs must be registered
    /// before.
    ///
    /// Fails if the file is an input or an output already.
    pub fn write(&mut self, path: &Path) -> anyhow::Result<()> {
        let is_standard = is_standard(path) || STANDARD_OUTPUT.iter().any(|name| path == Path::new(name));
        let identities = if is_standard {
            // Standard output may be a pipe or a file.
            [Some(Identity::Place("-".into())), Identity::of(Path::new("/dev/stdout"))]
        } else {
            let identity = Identity::of(path);
            let place =
                identity.as_ref().map(|identity| Identity::Place(self.one_spelling(identity.place(path))));
            // A file that does not exist yet is identified by its place only.
            let place = place.filter(|place| identity.as_ref() != Some(place));
            [identity, place]
        };
        for identity in identities.into_iter().flatten() {
            if let Some(input) = self.read.get(&identity) {
                let path = name(path, "standard output").to_owned();
                return Err(Error::Write { path, reason: WriteError::SameAsInput(input.clone()) }.into());
            }
            if let Some(other) = self.written.insert(identity, path.to_owned()) {
                let (path, other) = (name(path, "standard output"), name(&other, "standard output"));
                let also = if path == other { String::new() } else { format!(", as {}", other.display()) };
                return Err(usage(format!("{} would be written twice{also}", path.display())));
            }
        }
        Ok(())
    }

    /// The first spelling of a place, if its folder is case-insensitive.
    fn one_spelling(&mut self, place: PathBuf) -> PathBuf {
        let first = self.places.entry(folded(&place)).or_insert_with(|| place.clone());
        let is_one = *first != place && place.parent().is_some_and(self.is_case_insensitive);
        if is_one { first.clone() } else { place }
    }
}

/// Refuses to replace a file that exists, unless `force`; see [`begin`](super::streams::begin) for one that appears later.
pub fn check_absent(path: &Path, force: bool, advice: &str) -> anyhow::Result<()> {
    if force || is_standard(path) || !path.is_file() {
        return Ok(());
    }
    Err(exists(Failure::Exists(path.to_owned()), advice))
}

/// The error of an existing output.
fn exists(failure: Failure, advice: &str) -> anyhow::Error {
    anyhow!("use --force to overwrite it{advice}").context(failure)
}

/// Advice on a file that this program did not write.
const NOT_RECORDED: &str = " (it is not a recorded result)";

/// Refuses to replace a file that this program did not write, wrote for another recording, or that has changed since.
pub fn check_replaceable(state: &State, output: &Path) -> anyhow::Result<()> {
    match state {
        State::Current | State::Outdated => Ok(()),
        State::Changed => Err(exists(Failure::Changed(output.to_owned()), "")),
        State::OfAnother(input) => Err(of_another(output, input)),
        State::Foreign => check_absent(output, false, NOT_RECORDED),
    }
}

/// The error of an output that is the result of another recording.
fn of_another(output: &Path, input: &Path) -> anyhow::Error {
    let here = std::env::current_dir().and_then(fs::canonicalize).ok();
    let input = here.and_then(|here| input.strip_prefix(here).ok()).unwrap_or(input);
    let failure = Failure::OfAnother(output.to_owned(), input.to_owned());
    anyhow!("choose another folder, or use --force to replace it").context(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upper_and_lower_case_are_one_where_the_file_system_has_it_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("in.wav"), "x").unwrap();
        for is_one in [false, true] {
            let is_case_insensitive: fn(&Path) -> bool = if is_one { |_| true } else { |_| false };
            let mut claims = Claims { is_case_insensitive, ..Claims::default() };
            claims.read(&path("in.wav"));
            let mut write = |name: &str| claims.write(&path(name)).map_err(|error| error.to_string());
            assert!(write("in.wav").is_err() && write("out.wav").is_ok() && write("out.wav").is_err());
            let [input, output] = ["IN.wav", "OUT.wav"].map(write);
            assert_eq!(input.is_err_and(|error| error.contains("same file as the input")), is_one);
            let twice = |error: String| error.contains("written twice") && error.contains("out.wav");
            assert_eq!(output.is_err_and(twice), is_one);
        }
    }
}
