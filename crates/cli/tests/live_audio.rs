//! `denoise live` on the devices of a sound server, until Ctrl-C or the end of the server.

#![cfg(all(feature = "live-audio", target_os = "linux"))]

mod shared;

use shared::{Folder, INPUT, OUTPUT, demo, rest_of};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A private sound server with a virtual microphone and a virtual loudspeaker.
struct Server {
    folder: Folder,
    process: Child,
}

impl Server {
    /// Starts the server; `None` if PulseAudio or one of its tools is not installed.
    fn new() -> Option<Self> {
        let tools = ["pulseaudio", "pactl", "paplay", "parec"];
        if tools.iter().any(|tool| Command::new(tool).arg("--version").output().is_err()) {
            return None;
        }
        let folder = Folder::new();
        fs::write(folder.join(".asoundrc"), "pcm.!default { type pulse }\nctl.!default { type pulse }\n")
            .unwrap();
        let options = ["-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no"];
        let mut command = Command::new("pulseaudio");
        command.args(options).args(["-L", "module-native-protocol-unix"]);
        for name in ["loudspeaker", "microphone"] {
            command.args(["-L", &format!("module-null-sink sink_name={name} rate=48000")]);
        }
        Self::place(&folder, &mut command);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Self { folder, process };
        let start = Instant::now();
        while !server.run("pactl", &["set-default-source", "microphone.monitor"]) {
            assert!(start.elapsed() < Duration::from_secs(20), "pulseaudio does not start");
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(server.run("pactl", &["set-default-sink", "loudspeaker"]));
        Some(server)
    }

    /// Sets the environment of a command so that it uses this server and no settings of the user.
    fn place(folder: &Folder, command: &mut Command) {
        let path = folder.0.path();
        command.env("HOME", path).env("XDG_RUNTIME_DIR", path).env("PULSE_RUNTIME_PATH", path);
        command.env_remove("PULSE_SERVER");
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        Self::place(&self.folder, &mut command);
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> bool {
        self.command(program).args(arguments).output().unwrap().status.success()
    }

    /// Starts `denoise live` and waits until it plays.
    fn live(&self) -> (Child, BufReader<std::process::ChildStderr>) {
        let mut command = shared::program();
        Self::place(&self.folder, &mut command);
        let arguments = ["live", "--input", "pulse", "--output", "pulse"];
        let mut live = command.args(arguments).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(live.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        if !line.contains("press Ctrl-C to stop") {
            // Otherwise, reading standard error would never end.
            live.kill().unwrap();
            panic!("{line}{}", rest_of(stderr));
        }
        (live, stderr)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The test may already have ended the process.
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// Exit code of a program that ends by itself within 20 s.
fn code(mut child: Child) -> i32 {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().expect("it ended by a signal");
        }
        assert!(start.elapsed() < Duration::from_secs(20), "it does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn live_runs_until_ctrl_c_or_until_the_devices_are_lost() {
    let Some(mut server) = Server::new() else {
        std::io::stderr()
            .write_all(b"SKIPPED: devices need pulseaudio, pulseaudio-utils and libasound2-plugins\n")
            .unwrap();
        return;
    };
    let (live, stderr) = server.live();
    let noisy = demo("demo-noisy.wav");
    let recorder = ["-d", "loudspeaker.monitor", "--format=s16le", "--rate=16000", "--channels=1", "--raw"];
    let mut recorder = server.command("parec").args(recorder).stdout(Stdio::piped()).spawn().unwrap();
    let mut voice = server.command("paplay");
    let mut voice = voice.args(["--device=microphone", noisy.to_str().unwrap()]).spawn().unwrap();
    let level = |samples: &[[u8; 2]]| {
        samples.iter().map(|&x| f64::from(i16::from_le_bytes(x)).abs()).fold(0.0, f64::max)
    };
    // A busy machine may take seconds until it plays.
    let (start, mut heard) = (Instant::now(), 0.0);
    let mut pipe = recorder.stdout.take().unwrap();
    let mut half_a_second = vec![0; 16_000];
    while heard <= 1_000.0 && start.elapsed() < Duration::from_secs(20) {
        pipe.read_exact(&mut half_a_second).unwrap();
        heard = level(half_a_second.as_chunks().0).max(heard);
    }
    assert!(heard > 1_000.0, "the loudspeaker plays no voice: {heard}");
    assert!(voice.wait().unwrap().success());
    recorder.kill().unwrap();
    recorder.wait().unwrap();

    assert!(Command::new("kill").args(["-INT", &live.id().to_string()]).status().unwrap().success());
    let (ended, stderr) = (code(live), rest_of(stderr));
    assert!(ended == 0 && stderr.contains("delay "), "{ended}: {stderr}");

    let (live, stderr) = server.live();
    server.process.kill().unwrap();
    let code = code(live);
    let stderr = rest_of(stderr);
    assert!([INPUT, OUTPUT].contains(&code), "{code}: {stderr}");
    let last = stderr.lines().last().unwrap();
    assert!(last.starts_with("denoise: ") && last.contains("put device"), "{stderr}");
}

/// ALSA itself would print a line for every device of its configuration that the machine lacks.
#[test]
fn a_device_that_is_not_there_is_reported_in_one_line() {
    let folder = Folder::new();
    fs::write(folder.join(".asoundrc"), "pcm.!default { type plug slave.pcm nothing }\n").unwrap();
    let mut command = shared::program();
    Server::place(&folder, &mut command);
    let found = command.arg("live").output().unwrap();
    let stderr = String::from_utf8_lossy(&found.stderr);
    assert_eq!(found.status.code(), Some(INPUT), "{stderr}");
    assert!(stderr.starts_with("denoise: input device ") && stderr.lines().count() == 1, "{stderr}");
}

#[test]
fn meters_fit_a_terminal_of_eighty_columns() {
    let Some(server) = Server::new() else {
        std::io::stderr()
            .write_all(b"SKIPPED: the meters need pulseaudio, pulseaudio-utils and libasound2-plugins\n")
            .unwrap();
        return;
    };
    let noisy = demo("demo-noisy.wav");
    let mut voice = server.command("paplay");
    let mut voice = voice.args(["--device=microphone", noisy.to_str().unwrap()]).spawn().unwrap();
    let home = server.folder.0.path().to_str().unwrap();
    let variables = [("HOME", home), ("XDG_RUNTIME_DIR", home), ("PULSE_RUNTIME_PATH", home)];
    let program = shared::path();
    let line = format!(
        "timeout --foreground --preserve-status --signal=INT 5 '{program}' live --input pulse --output pulse"
    );
    let output = shared::on_terminal(80, &variables, &line);
    let lines = shared::drawn(&output, 80);
    let meters: Vec<&String> =
        lines.iter().filter(|line| line.starts_with("speech ") && line.contains('░')).collect();
    assert!(meters.len() > 10, "{lines:#?}");
    assert!(meters.iter().all(|line| line.chars().count() < 80 && line.contains(" delay ")), "{meters:#?}");
    assert!(output.contains("\x1b[32m"), "{output:?}");
    // The last line is a summary for logs, and longer.
    assert!(lines.iter().any(|line| line.contains(" %, delay ")), "{lines:#?}");
    // Input of the screenshots.
    fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/live.ansi"), &output).unwrap();
    voice.kill().unwrap();
    voice.wait().unwrap();
}
