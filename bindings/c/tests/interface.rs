//! Checks that the header matches the code, and that C and C++ programs compile with it without warnings, and run, also
//! under valgrind. Tests are skipped if a compiler is missing, and runs under valgrind if it is missing.
#![cfg(target_os = "linux")]

use alphamf::denoiser::SessionSettings;
use alphamf::{Denoiser, Dictionary, Settings};
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// Libraries that programs link beside this one.
const NATIVE: [&str; 4] = ["-lm", "-lpthread", "-ldl", "-lgcc_s"];

#[test]
fn the_header_is_current() {
    let path = Path::new(ROOT).join("include/alphamf.h");
    let config = cbindgen::Config::from_file(Path::new(ROOT).join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(Path::new(ROOT).join("src/lib.rs"))
        .generate()
        .unwrap();
    let mut header = Vec::new();
    bindings.write(&mut header);
    if std::env::var_os("UPDATE_HEADER").is_some() {
        std::fs::write(&path, &header).unwrap();
    }
    let found = std::fs::read(&path).unwrap_or_default();
    assert!(found == header, "{} is stale: run the tests with UPDATE_HEADER=1 to update it", path.display());
}

/// Folder of the libraries built with this test.
fn libraries() -> PathBuf {
    let dependencies = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let folders = [dependencies.clone(), dependencies.parent().unwrap().to_owned()];
    let holds = |folder: &&PathBuf| folder.join("libalphamf_c.so").exists();
    folders.iter().find(holds).unwrap_or_else(|| panic!("no libalphamf_c.so in {folders:?}")).clone()
}

/// Folder with the library under the name that it declares. Copied once: tests run in parallel, and a program that
/// loads a library while it is copied crashes.
static NAMED_LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lib");
    std::fs::create_dir_all(&folder).unwrap();
    let interface = match (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR")) {
        // Before 1.0, every minor version may remove functions.
        ("0", minor) => format!("0.{minor}"),
        (major, _) => major.to_owned(),
    };
    let named = folder.join(format!("libalphamf_c.so.{interface}"));
    let _ = std::fs::remove_file(&named);
    std::fs::copy(libraries().join("libalphamf_c.so"), &named).unwrap();
    folder
});

fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !there {
        std::io::stderr().write_all(format!("SKIPPED: {program} is not installed\n").as_bytes()).unwrap();
    }
    there
}

/// Compiles a program and links it to the shared library.
fn compile(compiler: &str, source: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let output = Command::new(compiler)
        .args(["-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
        .args(flags)
        .arg("-I")
        .arg(Path::new(ROOT).join("include"))
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(libraries())
        .arg("-lalphamf_c")
        .args(NATIVE)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn run<S: AsRef<OsStr>>(command: impl IntoIterator<Item = S>, input: &[i16]) -> Output {
    let mut words = command.into_iter();
    let mut child = Command::new(words.next().unwrap())
        .args(words)
        .env("LD_LIBRARY_PATH", &*NAMED_LIBRARY)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let bytes: Vec<u8> = input.iter().flat_map(|code| code.to_ne_bytes()).collect();
    let mut stdin = child.stdin.take().unwrap();
    // A program may end before it has read everything.
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&bytes);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn codes(bytes: &[u8]) -> Vec<i16> {
    bytes.chunks_exact(2).map(|code| i16::from_ne_bytes([code[0], code[1]])).collect()
}

/// A tone in noise at 8 kHz.
fn recording(samples: usize) -> Vec<i16> {
    let mut state = 1_u32;
    let mut noise = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 16) / 65_536.0 - 0.5
    };
    (0..samples).map(|n| (8_000.0 * (0.3 * n as f64).sin() + 2_000.0 * noise()) as i16).collect()
}

/// Output of the Rust library, as 16-bit samples like those of the example.
fn expected(codes: &[i16], mix: f32) -> Vec<i16> {
    let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), Settings::fast()).unwrap();
    let settings = SessionSettings { mix, ..SessionSettings::default() };
    let mut session = denoiser.session(8_000, 1, settings).unwrap();
    let samples: Vec<f32> = codes.iter().map(|&code| f32::from(code) / 32_768.0).collect();
    let mut speech = session.push(&[&samples]).unwrap().speech.remove(0);
    speech.extend(session.finish().unwrap().speech.remove(0));
    speech
        .into_iter()
        .map(|sample| (sample * 32_768.0).round_ties_even().clamp(-32_768.0, 32_767.0) as i16)
        .collect()
}

#[test]
fn programs_use_it() {
    if !is_there("cc") {
        return;
    }
    let example = compile("cc", &Path::new(ROOT).join("examples/denoise.c"), "example", &["-std=c99"]);
    let noisy = recording(40_000);
    let words = |program: &Path| vec![program.display().to_string(), "8000".into(), "quality=fast".into()];
    let output = run([words(&example), vec!["mix=0.75".into(), "threads=2".into()]].concat(), &noisy);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("\"samples\":40000"), "{said}");
    assert!(codes(&output.stdout) == expected(&noisy, 0.75));

    for (options, complaint) in [
        ("strength=brutal", "`strength` is \"brutal\": expected one of gentle, normal, strong"),
        ("colour=red", "option is colour; expected quality, "),
        ("no_dither=true", "`no_dither` has no effect on samples that are floats: omit it"),
        ("mix=2", "`mix` is 2: expected 0 to 1"),
        ("threads=0", "threads is 0; expected 1 to 1024"),
        ("mix", "value is a null pointer"),
    ] {
        let output = run([words(&example), vec![options.into()]].concat(), &noisy);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(complaint), "{options}: {}: {said}", output.status);
    }
}

/// Runs a test program directly and under valgrind.
fn misuse_does_no_harm(source: &str) {
    if !is_there("cc") {
        return;
    }
    let source = Path::new(ROOT).join("tests").join(source);
    let program = compile("cc", &source, source.file_stem().unwrap().to_str().unwrap(), &["-std=c99"]);
    let output = run([&program], &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    if is_there("valgrind") {
        let strict = ["valgrind", "--quiet", "--leak-check=full", "--errors-for-leak-kinds=definite"];
        let strict = [&strict[..], &["--error-exitcode=9"]].concat().into_iter().map(OsStr::new);
        let output = run(strict.chain([program.as_os_str()]), &[]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn misuse_of_streams_does_no_harm() {
    misuse_does_no_harm("misuse.c");
}

#[test]
fn misuse_of_the_speech_track_does_no_harm() {
    misuse_does_no_harm("speech_track.c");
}

#[test]
fn misuse_of_the_live_denoiser_does_no_harm() {
    misuse_does_no_harm("live_misuse.c");
}

#[test]
fn threads_are_limited() {
    if !is_there("cc") {
        return;
    }
    let program = compile("cc", &Path::new(ROOT).join("tests/threads.c"), "threads", &["-std=c99"]);
    let output = run([&program], &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn calls_fail_while_their_thread_ends() {
    if !is_there("cc") {
        return;
    }
    let source = Path::new(ROOT).join("tests/thread_exit.c");
    let program = compile("cc", &source, "thread_exit", &["-std=c99", "-pthread"]);
    let output = run([&program], &[]);
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
}

/// Runs the README's command for static linking, with the folders of this build.
#[test]
fn the_readme_links_statically() {
    if !is_there("cc") {
        return;
    }
    let readme = std::fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let shown = readme.split("**Static linking.** `").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
    let root = Path::new(ROOT);
    let command = shown
        .replace("program.c", &root.join("tests/threads.c").display().to_string())
        .replace("$(pkg-config --cflags alphamf)", &format!("-I{}", root.join("include").display()))
        .replace("~/.local/lib", &libraries().display().to_string());
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("static");
    let mut words = command.split(' ');
    let mut cc = Command::new(words.next().unwrap());
    let output = cc.args(words).arg("-o").arg(&program).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(program).env_remove("LD_LIBRARY_PATH").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles and runs the README's C++ program.
#[test]
fn the_readme_holds_in_cpp() {
    if !is_there("c++") {
        return;
    }
    let readme = std::fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let shown = readme.split("```cpp\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme.cpp");
    std::fs::write(&source, shown).unwrap();
    let program = compile("c++", &source, "readme", &["-std=c++17"]);
    let output = run([&program], &[]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("16000 samples"), "{said}");
}
