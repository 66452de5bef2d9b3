//! Ctrl-C during training, while inputs are read, and while ffmpeg runs.
#![cfg(unix)]

mod shared;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Interrupts a run and returns its exit code and standard error.
fn interrupted(child: Child) -> (Option<i32>, String) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn learning_is_ended_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let (speech, dictionary) = (folder.path().join("speech"), folder.path().join("dictionary.safetensors"));
    std::fs::create_dir(&speech).unwrap();
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../audio/demo-clean.wav");
    std::fs::copy(demo, speech.join("clean.wav")).unwrap();
    let child = shared::program()
        .args([Path::new("train"), &speech, Path::new("-o"), &dictionary])
        .args(["--iterations", "100000"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // By then, it is training, which would take minutes.
    shared::wait_for_handlers(&child);
    thread::sleep(Duration::from_secs(2));
    let pressed = Instant::now();
    let (code, message) = interrupted(child);
    assert_eq!(code, Some(130), "{message}");
    assert!(message.ends_with("interrupted\n"), "{message}");
    // On an idle machine, it takes at most a second.
    assert!(pressed.elapsed() < Duration::from_secs(5), "{:?}", pressed.elapsed());
    assert!(!dictionary.exists());
}

/// The last file is no recording: a run that is not interrupted fails on it.
#[test]
fn reading_what_a_protocol_trains_on_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let join = |name: &str| folder.path().join(name);
    let audio = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../audio");
    std::fs::create_dir(join("speech")).unwrap();
    std::fs::copy(audio.join("demo-clean.wav"), join("clean.wav")).unwrap();
    std::fs::copy(audio.join("demo-noisy.wav"), join("noisy.wav")).unwrap();
    for number in 0..200 {
        std::fs::hard_link(join("clean.wav"), join(&format!("speech/{number}.wav"))).unwrap();
    }
    std::fs::write(join("speech/none.wav"), "none").unwrap();
    let protocol = "name = 'p'\n[corpus]\nclean = ['clean.wav']\nnoisy = ['noisy.wav']\n\
                    [training]\nclean = ['speech/*.wav']\nsample_rate = 16000\n";
    std::fs::write(join("protocol.toml"), protocol).unwrap();
    let child = shared::program()
        .args(["eval", "--protocol", "protocol.toml", "--data", "."])
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    shared::wait_for_handlers(&child);
    assert_eq!(interrupted(child), (Some(130), "denoise: interrupted\n".to_owned()));
}

#[test]
fn waiting_for_a_pipe_is_ended_and_not_blamed_on_it() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for arguments in [["merge"].as_slice(), &["in.wav", "--manifest"], &["in.wav", "out.wav", "--model"]] {
        let child = shared::program()
            .args(arguments)
            .arg(&pipe)
            .args(if arguments.len() < 3 { &["-o", "out"][..] } else { &[] })
            .current_dir(folder.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        shared::wait_for_handlers(&child);
        assert_eq!(interrupted(child), (Some(130), "denoise: interrupted\n".to_owned()), "{arguments:?}");
    }
}

/// ffmpeg runs in its own process group, which Ctrl-C at the terminal does not reach.
#[test]
#[cfg(target_os = "linux")]
fn ffmpeg_ends_with_the_program() {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let join = |name: &str| folder.path().join(name);
    let script = "#!/bin/sh\n[ \"$5\" = '' ] && exec echo ffmpeg version 7\n\
                  echo $$ >\"${0%/*}/started\"; mv \"${0%/*}/started\" \"${0%/*}/number\"; exec sleep 600\n";
    fs::write(join("ffmpeg"), script).unwrap();
    fs::set_permissions(join("ffmpeg"), PermissionsExt::from_mode(0o755)).unwrap();
    fs::write(join("in.xyz"), "Of a kind that only ffmpeg may be able to read.").unwrap();
    shared::write(&join("in.wav"), shared::spec(16_000, 1), shared::noisy(0.3));
    let wait = |what: &str, is_so: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < Duration::from_secs(60), "{what}");
            thread::sleep(Duration::from_millis(10));
        }
    };
    // While the program waits for ffmpeg to finish an output, the first Ctrl-C does not end it.
    for (input, output, times) in [("in.xyz", "out.wav", 1), ("in.wav", "out.mp3", 2)] {
        let child = shared::program()
            .args([join(input), join(output)])
            .env("PATH", format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap()))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait("ffmpeg is not started", &|| join("number").exists());
        let state = format!("/proc/{}/stat", fs::read_to_string(join("number")).unwrap().trim());
        fs::remove_file(join("number")).unwrap();
        for _ in 0..times {
            assert!(fs::exists(&state).unwrap(), "{output}: it has ended by itself");
            let press = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
            assert!(press.unwrap().success());
            thread::sleep(Duration::from_millis(200));
        }
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stderr));
        // A zombie process has ended as well: it may not have been reaped yet.
        wait(output, &|| fs::read_to_string(&state).map_or(true, |state| state.contains(") Z ")));
        assert!(
            !fs::read_dir(folder.path()).unwrap().any(|entry| entry
                .unwrap()
                .path()
                .extension()
                .is_some_and(|name| name == "part"))
        );
    }
}
