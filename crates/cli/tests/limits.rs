//! Runs with limited memory, writable folders, file descriptors and file sizes.
#![cfg(target_os = "linux")]

mod shared;

use shared::*;
use std::fs;
use std::io::Write;
use std::process::Output;

/// Runs the program in a folder after the shell commands `limits`, which restrict its resources.
fn limited(folder: &Folder, limits: &str, arguments: &str) -> Output {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("{limits}; exec \"$0\" {arguments} -q --quality fast")]);
    command.arg(assert_cmd::cargo::cargo_bin!("denoise")).current_dir(folder.0.path()).output().unwrap()
}

fn with_recording() -> Folder {
    let folder = Folder::new();
    write(&folder.join("in.wav"), spec(16_000, 1), noisy(2.0));
    folder
}

#[test]
fn little_memory_and_few_descriptors_are_enough() {
    let folder = with_recording();
    fs::create_dir(folder.join("many")).unwrap();
    for number in 0..20 {
        fs::copy(folder.join("in.wav"), folder.join(&format!("many/{number}.wav"))).unwrap();
    }
    for limits in ["ulimit -v 524288", "ulimit -n 32"] {
        for arguments in ["in.wav out.wav --force", "many -o out --force"] {
            let arguments = format!("{arguments} --threads 16");
            let output = limited(&folder, limits, &arguments);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{limits}, {arguments}: {stderr}");
        }
    }
    assert_eq!(fs::read_dir(folder.join("out")).unwrap().count(), 21, "and the record");
}

#[test]
fn nothing_is_written_but_beside_the_output() {
    let folder = with_recording();
    // The home and temporary folders cannot be written to, and no other program can be found.
    let limits =
        "export HOME=/proc/nowhere TMPDIR=/proc/nowhere XDG_CACHE_HOME=/proc/nowhere PATH=/proc/nowhere";
    let output =
        limited(&folder, limits, "in.wav out.wav --stats stats.json --plot plot.svg --levels levels.csv");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(folder.names(), ["in.wav", "levels.csv", "out.wav", "plot.svg", "stats.json"]);
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error() {
    let folder = with_recording();
    fs::write(folder.join("out.wav"), "before").unwrap();
    let output = limited(&folder, "ulimit -f 40", "in.wav out.wav --force");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(OUTPUT), "{stderr}");
    assert!(stderr.contains("out.wav") && stderr.contains("File too large"), "{stderr}");
    assert_eq!(folder.names(), ["in.wav", "out.wav"]);
    assert_eq!(fs::read(folder.join("out.wav")).unwrap(), b"before");
    // A limit that ends ffmpeg is an error, too.
    if std::process::Command::new("ffmpeg").arg("-version").output().is_err() {
        std::io::stderr()
            .write_all(b"SKIPPED: ffmpeg is not installed, so that its limit was not tested\n")
            .unwrap();
        return;
    }
    let output = limited(&folder, "ulimit -f 4", "in.wav out.mp3");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(OUTPUT), "{stderr}");
    assert!(stderr.contains("out.mp3") && stderr.contains("ffmpeg"), "{stderr}");
    assert_eq!(folder.names(), ["in.wav", "out.wav"]);
}

/// Messages on files, folders and damaged files that cannot be written do not change the exit code.
#[test]
fn a_standard_error_that_is_closed_or_full_stops_nothing() {
    let folder = with_recording();
    fs::create_dir(folder.join("many")).unwrap();
    fs::copy(folder.join("in.wav"), folder.join("many/a.wav")).unwrap();
    fs::write(folder.join("many/notes.txt"), "left out").unwrap();
    let whole = fs::read(folder.join("in.wav")).unwrap();
    fs::write(folder.join("cut.wav"), &whole[..whole.len() / 2]).unwrap();
    let runs = [
        ("in.wav out.wav --force", 0),
        ("many -o out --force", 0),
        ("cut.wav out.wav --force --salvage --log trace", 0),
        ("cut.wav none.wav", INPUT),
        ("missing.wav none.wav", INPUT),
        ("in.wav out.wav --no-such-option", USAGE),
        ("", USAGE),
    ];
    for (arguments, code) in runs {
        for error in ["2>/dev/full", "2>&-"] {
            let mut command = std::process::Command::new("sh");
            command.args(["-c", &format!("exec \"$0\" {arguments} {error}")]).current_dir(folder.0.path());
            let status = command.arg(assert_cmd::cargo::cargo_bin!("denoise")).status().unwrap();
            assert_eq!(status.code(), Some(code), "{arguments} {error}");
        }
    }
    assert!(folder.join("out/a.wav").exists() && !folder.join("none.wav").exists());
}

/// The program uses no temporary folder: unfinished files are beside the output.
#[test]
fn a_temporary_folder_and_a_home_that_are_read_only_are_not_missed() {
    // This folder must be below neither /tmp nor the home.
    let folder = Folder(tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    write(&folder.join("in.wav"), spec(16_000, 1), noisy(2.0));
    let isolated = |script: &str| {
        let script =
            format!("mount -t tmpfs -o ro none /tmp && mount -t tmpfs -o ro none \"$HOME\" && {script}");
        let mut command = std::process::Command::new("unshare");
        command.args(["-rm", "sh", "-c", &script]).arg(assert_cmd::cargo::cargo_bin!("denoise"));
        command.current_dir(folder.0.path()).env_remove("TMPDIR").output()
    };
    if !isolated("test -x \"$0\" -a -r \"$PWD/in.wav\"").is_ok_and(|run| run.status.success()) {
        std::io::stderr()
            .write_all(b"SKIPPED: no file system can be mounted here to test a read-only /tmp\n")
            .unwrap();
        return;
    }
    let run = isolated("! touch /tmp/x \"$HOME/x\" && exec \"$0\" in.wav out.wav -q --quality fast").unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(folder.names(), ["in.wav", "out.wav"]);
}
