//! Makes what a page loads from a WebAssembly module:
//!
//!     alphamf-bindgen MODULE.wasm FOLDER        its JavaScript, and the module for that
//!     alphamf-bindgen --split MODULE.wasm PART  cuts the bytes of a file out of the module, in place

mod split;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

/// Makes the JavaScript of a module.
fn bind(module: &OsString, folder: &OsString) -> Result<(), String> {
    let mut bindgen = wasm_bindgen_cli_support::Bindgen::new();
    let bindgen = bindgen.input_path(module).remove_name_section(true).remove_producers_section(true);
    let made = bindgen.web(true).and_then(|bindgen| bindgen.typescript(false).generate(folder));
    made.map_err(|error| format!("{error:#}"))
}

/// Cuts the bytes of a file out of a module.
fn split(module: &OsString, part: &OsString) -> Result<(), String> {
    let read =
        |path: &OsString| fs::read(path).map_err(|error| format!("{}: {error}", Path::new(path).display()));
    let cut = split::without(read(module)?, &read(part)?)?;
    fs::write(module, cut).map_err(|error| format!("{}: {error}", Path::new(module).display()))
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let done = match arguments.as_slice() {
        [flag, module, part] if flag == "--split" => split(module, part),
        [module, folder] => bind(module, folder),
        _ => Err("usage: alphamf-bindgen MODULE.wasm FOLDER, or --split MODULE.wasm PART".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
