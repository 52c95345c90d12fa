//! Runs the binary and waits for what it says; never for time to pass.

use onward_core::Env;
use onward_env::SystemEnv;
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};
use tempfile::TempDir;

/// Nothing here takes so long; a test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A data folder of one test.
pub(crate) struct Place {
    dir: TempDir,
}

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    /// Stdout of a command that must have gone well.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.stdout
    }

    /// Stderr of a command that must have ended with this exit code.
    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        self.stderr
    }

    /// Every line of stdout as JSON.
    #[track_caller]
    pub(crate) fn objects(&self) -> Vec<Value> {
        objects(&self.stdout)
    }
}

/// Every line as one JSON object.
#[track_caller]
pub(crate) fn objects(text: &str) -> Vec<Value> {
    let parse = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("not JSON: {e}: {line}"));
        assert!(value.is_object(), "not an object: {line}");
        value
    };
    text.lines().map(parse).collect()
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    /// The data folder; it is not there before the first command makes it.
    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// A file beside the data folder.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A path beside the data folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The command with its data folder.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onward"));
        command.args(args).env("ONWARD_DATA_DIR", self.data()).env_remove("NO_COLOR");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Done {
        done(self.command(args).output().unwrap())
    }

    /// Runs a shell script with these arguments.
    pub(crate) fn shell(&self, script: &str, args: &[&str]) -> Done {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).args(args).env("ONWARD_DATA_DIR", self.data()).stdin(Stdio::null());
        done(command.output().unwrap())
    }

    /// Runs a command with this on its stdin.
    pub(crate) fn run_with(&self, args: &[&str], stdin: &str) -> Done {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let text = stdin.to_owned();
        let writer = std::thread::spawn(move || pipe.write_all(text.as_bytes()));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        done(output)
    }

    /// Starts a command and goes on.
    pub(crate) fn start(&self, args: &[&str]) -> Live {
        let mut child = self.command(args).spawn().unwrap();
        let (stdout, stderr) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Live { child, stdout, stderr, seen: Vec::new() }
    }

    /// A pipe with a name, to see when the last process that holds it open has ended.
    pub(crate) fn fifo(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let made = Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        path
    }
}

/// The reading end of a named pipe.
pub(crate) struct Alive(Receiver<()>);

/// Begins to read a named pipe: whoever opens it for writing is then not held up.
pub(crate) fn watch(fifo: &Path) -> Alive {
    let (fifo, (ended, end)) = (fifo.to_owned(), channel());
    std::thread::spawn(move || {
        let mut text = String::new();
        std::fs::File::open(fifo).unwrap().read_to_string(&mut text).unwrap();
        // A test that failed meanwhile no longer waits.
        let _ = ended.send(());
    });
    Alive(end)
}

impl Alive {
    /// Waits until every process that has the pipe open for writing has ended.
    #[track_caller]
    pub(crate) fn all_have_ended(self) {
        self.0.recv_timeout(PATIENCE).expect("a process still runs");
    }
}

/// Asks again and again until it is so.
#[track_caller]
pub(crate) fn wait_until(what: &str, so: impl Fn() -> bool) {
    let begun = SystemEnv.monotonic();
    while !so() {
        assert!(SystemEnv.monotonic() - begun < PATIENCE, "it never was so: {what}");
    }
}

fn done(output: std::process::Output) -> Done {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    Done { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        BufReader::new(stream).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    receiver
}

/// A command that runs; killed when the test ends.
pub(crate) struct Live {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
    seen: Vec<String>,
}

impl Live {
    /// The next line of stdout that contains this text.
    #[track_caller]
    pub(crate) fn says(&mut self, text: &str) -> String {
        wait(&self.stdout, text, &mut self.seen)
    }

    /// The next line of stderr that contains this text.
    #[track_caller]
    pub(crate) fn notes(&mut self, text: &str) -> String {
        wait(&self.stderr, text, &mut self.seen)
    }

    /// Sends a signal by its name, as in `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status().unwrap();
        assert!(sent.success());
    }

    /// Kills the process that guards this worker's commands, and no other.
    pub(crate) fn kill_guard(&self) {
        let parent = format!("PPid:\t{}\n", self.child.id());
        let is_guard = |process: &Path| {
            let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
            let command = std::fs::read(process.join("cmdline")).unwrap_or_default();
            status.contains(&parent) && String::from_utf8_lossy(&command).contains("guard-commands")
        };
        let processes = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
        let guards: Vec<PathBuf> = processes.filter(|process| is_guard(process)).collect();
        assert_eq!(guards.len(), 1, "{guards:?}");
        let id = guards[0].file_name().unwrap();
        assert!(Command::new("kill").arg("-9").arg(id).status().unwrap().success());
    }

    /// SIGKILL, and the end that follows.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end; everything on stdout that was not read yet.
    pub(crate) fn end(mut self) -> Done {
        let stdout: Vec<String> = self.stdout.iter().collect();
        let stderr: Vec<String> = self.stderr.iter().collect();
        let code = self.child.wait().unwrap().code();
        Done { code, stdout: stdout.join("\n"), stderr: stderr.join("\n") }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn wait(lines: &Receiver<String>, text: &str, seen: &mut Vec<String>) -> String {
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) if line.contains(text) => return line,
            Ok(line) => seen.push(line),
            Err(e) => panic!("`{text}` did not come ({e}); before it came {seen:#?}"),
        }
    }
}
