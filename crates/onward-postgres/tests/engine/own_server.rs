//! A server of the test's own, that it may kill and configure.

use onward_core::Env;
use onward_env::SystemEnv;
use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;

/// A running server; it ends with this.
pub(crate) struct OwnServer {
    folder: TempDir,
    settings: Vec<String>,
    port: u16,
    process: Option<Child>,
}

/// Where Debian puts the server's programs, newest first.
fn programs() -> Option<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten().collect();
    found.sort_by_key(|entry| entry.file_name());
    found.last().map(|entry| entry.path().join("bin"))
}

fn is_root() -> bool {
    let own = Command::new("id").arg("-u").output().expect("`id` is everywhere");
    own.stdout.trim_ascii() == b"0"
}

/// The server refuses to run as root: then it runs as the user that its package made.
fn command(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
    command
}

impl OwnServer {
    /// With settings, as in `fsync=off`.
    pub(crate) async fn start(settings: &[&str]) -> Self {
        let programs = programs().expect("the programs of PostgreSQL are in /usr/lib/postgresql");
        let folder = tempfile::tempdir().unwrap();
        if is_root() {
            let given = Command::new("chown").arg("postgres").arg(folder.path()).status().unwrap();
            assert!(given.success());
        }
        let data = folder.path().join("data");
        let mut init = command(&programs.join("initdb"));
        init.arg("-D")
            .arg(&data)
            .args(["-U", "postgres", "--auth=trust", "--no-sync"])
            .current_dir(folder.path());
        let made = init.stdout(Stdio::null()).stderr(Stdio::inherit()).status().unwrap();
        assert!(made.success(), "initdb failed");
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = settings.iter().map(ToString::to_string).collect();
        let mut server = Self { folder, settings, port, process: None };
        server.up().await;
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Starts it, and waits until it answers.
    pub(crate) async fn up(&mut self) {
        let data = self.folder.path().join("data");
        let mut server = command(&programs().unwrap().join("postgres"));
        server.arg("-D").arg(&data).arg("-k").arg(self.folder.path());
        server.args([
            "-p",
            &self.port.to_string(),
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            "shared_buffers=16MB",
        ]);
        for setting in &self.settings {
            server.args(["-c", setting]);
        }
        server.stdout(Stdio::null()).stderr(Stdio::null()).current_dir(self.folder.path());
        self.process = Some(server.spawn().unwrap());
        for _ in 0..3_000 {
            if tokio_postgres::connect(&self.url(), tokio_postgres::NoTls).await.is_ok() {
                return;
            }
            SystemEnv.sleep(Duration::from_millis(20)).await;
        }
        panic!("the server does not come up");
    }

    /// Ends it as the death of its machine's power would not, but the worst that a process can meet: SIGKILL.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        self.kill();
    }
}
