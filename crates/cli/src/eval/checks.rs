//! Checks of `denoise eval` before any work.

use super::{Arguments, NOTHING, Outputs};
use crate::claims::{Claims, check_absent};
use crate::failure::{Failure, usage};
use crate::model::{Mode, as_usage};
use crate::streams::{check_folder, is_standard};
use alphamf::{Options as DenoiserOptions, Settings};
use alphamf_eval::{Options, Pairing, Protocol};
use alphamf_files::FolderContents;
use alphamf_files::output::place;
use anyhow::anyhow;
use std::fs;
use std::path::{Path, PathBuf};

/// Refuses arguments that name no recordings.
pub(super) fn check_source(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { clean, noisy, enhanced, manifest, protocol, .. } = arguments;
    let is_paired = clean.is_some() && (noisy.is_some() || enhanced.is_some());
    if is_paired || manifest.is_some() || protocol.is_some() { Ok(()) } else { Err(usage(NOTHING)) }
}

/// Refuses standard input for lists, which name files relative to themselves; standard output for outputs that are not
/// a single stream; and a folder of the denoised audio that cannot be written to.
pub(super) fn check_named(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments { manifest, protocol, save, resume, figure, .. } = arguments;
    for (option, path) in [("--manifest", manifest), ("--protocol", protocol)] {
        if path.as_deref().is_some_and(is_standard) {
            return Err(usage(format!("{option} cannot be standard input: name a file")));
        }
    }
    for (option, path) in [("--save", save), ("--resume", resume), ("--figure", figure)] {
        if path.as_deref().is_some_and(is_standard) {
            return Err(usage(format!("{option} cannot be standard output: name it")));
        }
    }
    match save {
        Some(save) if save.exists() && !save.is_dir() => {
            Err(anyhow!("it is not a folder").context(Failure::Output(save.clone())))
        }
        Some(save) => check_folder(save),
        None => Ok(()),
    }
}

/// Refuses options of the denoiser without effect: all of them, if enhanced files are scored.
pub(super) fn check_options(arguments: &Arguments, is_enhanced: bool) -> anyhow::Result<()> {
    let Arguments { model, live, .. } = arguments;
    if !is_enhanced {
        let used: Vec<&str> = DenoiserOptions::float_names().collect();
        return model.options.only(&used, "on scores").map_err(as_usage);
    }
    model.options.only(&[], "on enhanced files").map_err(as_usage)?;
    match (model.dictionary_file(), live.mode()) {
        (Some(_), _) => Err(usage("--model has no effect on enhanced files: omit it")),
        (None, Mode::Live) => Err(usage("--live has no effect on enhanced files: omit it")),
        (None, Mode::Offline) => Ok(()),
    }
}

/// Refuses a figure without intermediate estimates.
pub(super) fn check_figure(arguments: &Arguments, protocol: Option<&Protocol>) -> anyhow::Result<()> {
    if arguments.figure.is_none() {
        return Ok(());
    }
    // Clap waives the required --protocol where another argument excludes it: --clean or --manifest.
    let Some(protocol) = protocol else {
        return Err(usage("--figure needs --protocol: name one, or omit it"));
    };
    match (protocol.trace_every, arguments.live.mode()) {
        (0, _) => Err(usage(
            "--figure: the protocol records no intermediate estimates: set its trace_every, or omit it",
        )),
        (_, Mode::Live) => {
            Err(usage("--figure has no effect on --live, which has no iterations: omit one of them"))
        }
        (_, Mode::Offline) => Ok(()),
    }
}

/// Refuses a folder of the denoised audio within the corpus: the next run would score that audio, too.
pub(super) fn check_save(arguments: &Arguments, protocol: Option<&Protocol>) -> anyhow::Result<()> {
    let Arguments { clean, noisy, enhanced, data, save, .. } = arguments;
    let Some(save) = save else { return Ok(()) };
    let path = fs::canonicalize(save).unwrap_or_else(|_| place(save));
    let patterns =
        protocol.zip(data.as_ref()).into_iter().flat_map(|(protocol, data)| protocol.folders(data));
    for folder in [clean, noisy, enhanced].into_iter().flatten().cloned().chain(patterns) {
        if fs::canonicalize(&folder).is_ok_and(|folder| path.starts_with(folder)) {
            let (save, folder) = (save.display(), folder.display());
            let reason = "the denoised audio would lie among the files of";
            return Err(usage(format!("--save {save}: {reason} {folder}: choose another folder")));
        }
    }
    Ok(())
}

/// Refuses outputs that would overwrite an input or another output, before any work.
pub(super) fn check_apart(
    arguments: &Arguments,
    protocol: Option<&Protocol>,
    pairing: &Pairing,
) -> anyhow::Result<()> {
    let Arguments { clean, noisy, enhanced, data, save, force, .. } = arguments;
    let mut claims = Claims::default();
    let mut inputs: Vec<&Path> = arguments.model.dictionary_file().into_iter().collect();
    inputs.extend([&arguments.manifest, &arguments.protocol].into_iter().flatten().map(PathBuf::as_path));
    for pair in &pairing.pairs {
        let files = [Some(&pair.clean), pair.noisy.as_ref(), pair.enhanced.as_ref()];
        inputs.extend(files.into_iter().flatten().map(PathBuf::as_path));
    }
    inputs.into_iter().for_each(|path| claims.read(path));
    // Recordings without a partner are inputs, too.
    for folder in [clean, noisy, enhanced, data].into_iter().flatten() {
        let contents = FolderContents::scan(folder, save.as_deref().as_slice());
        contents.iter().flat_map(|contents| &contents.audio).for_each(|path| claims.read(path));
    }
    let mut systems = Vec::new();
    if let (Some(protocol), Some(data)) = (protocol, &arguments.data) {
        protocol.training_files(data)?.iter().for_each(|path| claims.read(path));
        systems.extend(protocol.variants::<Settings>()?.into_iter().map(|variant| variant.name));
    }
    let by_iterations = arguments.figure_by_iterations();
    for path in arguments.reports().chain(by_iterations.as_deref()) {
        claims.write(path)?;
        check_absent(path, *force, "")?;
    }
    let names: Vec<Option<&str>> = match systems.as_slice() {
        [] | [_] => vec![None],
        several => several.iter().map(|name| Some(name.as_str())).collect(),
    };
    for name in names {
        let Outputs { save, journal, replace } = arguments.outputs(name);
        journal.iter().try_for_each(|path| claims.write(path))?;
        let options = Options { save, ..Options::default() };
        for path in pairing.pairs.iter().filter_map(|pair| options.saved(pair)) {
            claims.write(&path)?;
            check_absent(&path, replace, "")?;
        }
    }
    Ok(())
}
