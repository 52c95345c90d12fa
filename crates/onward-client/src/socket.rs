//! The Unix socket of a data folder: bound for its owner only, reached through any length of path.

use onward_core::{Error, Result};
use std::{
    fs::{self, File, Permissions},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};
use tokio::net::{UnixListener, UnixStream};

/// Longest path that the operating system takes for a socket, in bytes.
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

/// A path to the same place that the operating system takes for a socket, valid while this lives.
struct Short {
    path: PathBuf,
    _folder: Option<File>,
}

impl Short {
    /// A longer path goes by way of its opened folder.
    fn of(path: &Path) -> io::Result<Self> {
        if path.as_os_str().len() <= SOCKET_PATH_BYTES_MAX {
            return Ok(Self { path: path.into(), _folder: None });
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::other("the path names no file"));
        };
        let folder = File::open(parent)?;
        let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
        Ok(Self { path: short, _folder: Some(folder) })
    }
}

/// Connects to the socket at `path`.
///
/// # Errors
/// `Unavailable` when nobody listens there; nothing was sent.
pub(crate) async fn connect(path: &Path) -> Result<UnixStream> {
    let short = Short::of(path).map_err(|e| unreachable_at(path, &e))?;
    UnixStream::connect(&short.path).await.map_err(|e| unreachable_at(path, &e))
}

fn unreachable_at(path: &Path, error: &io::Error) -> Error {
    Error::unavailable(format!("no host answers: {error}"))
        .at(path.display())
        .mend("check that a process has the folder open")
}

/// A listener at `path`, with mode 0600, in the place of whatever stood there.
///
/// The caller must hold the folder's lock: it alone tells a stale socket from one in use.
///
/// # Errors
/// `Unavailable` when the folder can't be written to.
pub(crate) fn listen(path: &Path) -> Result<Bound> {
    let failed = |e: io::Error| {
        Error::unavailable(format!("the socket can't be made: {e}"))
            .at(path.display())
            .mend("check the folder's permissions and the space on its disk")
    };
    // Made aside and then moved, so that the place never holds a socket with wider permissions.
    let aside = path.with_extension(format!("{}.new", std::process::id()));
    let _ = fs::remove_file(&aside);
    let listener = Short::of(&aside).and_then(|short| UnixListener::bind(&short.path)).map_err(failed)?;
    fs::set_permissions(&aside, Permissions::from_mode(0o600)).map_err(failed)?;
    fs::rename(&aside, path).map_err(failed)?;
    let inode = fs::metadata(path).map_err(failed)?.ino();
    Ok(Bound { listener, path: path.into(), inode })
}

/// A bound socket; its file goes when this does.
#[derive(Debug)]
pub(crate) struct Bound {
    listener: UnixListener,
    path: PathBuf,
    inode: u64,
}

impl Bound {
    /// The next connection of the same user, or of the machine's administrator.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            let user = stream.peer_cred()?.uid();
            if user == rustix::process::geteuid().as_raw() || user == 0 {
                return Ok(stream);
            }
            tracing::warn!(user, "refused a connection of another user");
        }
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // A later host may have put its own socket there.
        if fs::metadata(&self.path).is_ok_and(|there| there.ino() == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}
