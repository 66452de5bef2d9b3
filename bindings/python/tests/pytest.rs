//! Runs the tests of the Python package with the library built with this test; skipped without numpy and pytest.

#![cfg(target_os = "linux")]

use std::io::Write;
use std::path::Path;
use std::process::Command;

#[test]
fn the_package_passes_its_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let can_import = |modules: &str| {
        let output = Command::new(&python).args(["-c", &format!("import {modules}")]).output();
        output.is_ok_and(|output| output.status.success())
    };
    if !can_import("numpy, pytest") {
        std::io::stderr().write_all(b"SKIPPED: no Python with numpy and pytest: set PYTHON\n").unwrap();
        return;
    }
    let dependencies = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let folders = [dependencies.clone(), dependencies.parent().unwrap().to_owned()];
    let built = folders.iter().map(|folder| folder.join("lib_native.so")).find(|path| path.exists()).unwrap();
    let packages = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
    let package = packages.join("alphamf");
    std::fs::create_dir_all(&package).unwrap();
    for entry in std::fs::read_dir(root.join("alphamf")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "py") {
            std::fs::copy(&path, package.join(path.file_name().unwrap())).unwrap();
        }
    }
    let native = package.join("_native.abi3.so");
    let _ = std::fs::remove_file(&native);
    std::fs::copy(built, native).unwrap();
    let mut pytest = Command::new(&python);
    pytest.args([
        "-B",
        "-m",
        "pytest",
        "-q",
        "-rs",
        "-p",
        "no:cacheprovider",
        "--import-mode=append",
        "--durations=5",
    ]);
    if can_import("xdist") {
        pytest.args(["--numprocesses", "auto"]);
    }
    pytest.arg(root.join("tests")).current_dir(&packages).env("PYTHONPATH", &packages);
    // The program, if it was built beside it: its output is the package's.
    let program = folders[1].join("denoise");
    if program.exists() {
        pytest.env("DENOISE", program);
    }
    assert!(pytest.status().unwrap().success());
}
