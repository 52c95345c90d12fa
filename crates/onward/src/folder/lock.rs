//! The lock of a data folder: whoever holds it is the host.

use onward_core::{Error, Result};
use std::{
    fs::{File, OpenOptions, TryLockError},
    io::Write,
    path::Path,
};

const LOCK: &str = "host.lock";
/// Longest name of a holder that is read, in bytes.
const HOLDER_BYTES_MAX: usize = 512;

/// The lock of a folder, held while this lives. The kernel frees it when the process ends, however that ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// What came of trying to get the lock.
#[derive(Debug)]
pub(crate) enum Tried {
    /// It is ours.
    Got(Lock),
    /// Somebody has it; its name, for people.
    Held(String),
}

impl Lock {
    /// Takes the lock unless another process has it. Does not wait.
    ///
    /// # Errors
    /// `Unavailable` when the lock's file can't be used.
    pub(crate) fn attempt(folder: &Path) -> Result<Tried> {
        let path = folder.join(LOCK);
        let failed = |e: std::io::Error| {
            Error::unavailable(format!("the folder's lock can't be used: {e}"))
                .at(path.display())
                .mend("check the folder's permissions and the space on its disk")
        };
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Tried::Held(holder(&path))),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        // A full disk must not keep the folder from being opened: the name is for people only.
        let _ = file.set_len(0).and_then(|()| file.write_all(myself().as_bytes()));
        Ok(Tried::Got(Self { _file: file }))
    }
}

fn holder(path: &Path) -> String {
    let said = std::fs::read(path).unwrap_or_default();
    let said = String::from_utf8_lossy(&said[..said.len().min(HOLDER_BYTES_MAX)]).into_owned();
    if said.is_empty() { "another process".to_owned() } else { said }
}

/// This process's number and command.
fn myself() -> String {
    let mut words = std::env::args().take(4);
    let program = words.next().unwrap_or_default();
    let program = Path::new(&program).file_name().map(|name| name.to_string_lossy().into_owned());
    let command: Vec<String> = program.into_iter().chain(words).collect();
    let command: String = command.join(" ").chars().filter(|c| !c.is_control()).take(100).collect();
    format!("process {} ({command})", std::process::id())
}
