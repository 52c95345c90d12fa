//! Activating a newer format of a data folder.

use onward_core::Result;
use onward_embedded::outside;
use std::path::Path;

/// What an upgrade came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upgraded {
    /// The folder's format before.
    pub before: u32,
    /// The folder's format now.
    pub now: u32,
}

/// Makes a folder's format the newest that this version knows; nothing is written if it has that already.
///
/// # Errors
/// `NotFound` where no data folder is, `AlreadyExists` while a process has it open, `Unsupported` for a newer format, the
/// disk's.
pub fn upgrade(dir: &Path) -> Result<Upgraded> {
    upgrade_to(dir, outside::FORMAT)
}

fn upgrade_to(dir: &Path, newest: u32) -> Result<Upgraded> {
    crate::source::Source::new(dir).check_known(newest)?;
    let _lock = outside::lock(dir)?;
    let before = crate::source::Source::new(dir).check_known(newest)?;
    if before < newest {
        let path = dir.join(outside::FORMAT_NAME);
        let written = crate::claim::write_whole(&path, outside::format_line_of(newest).as_bytes());
        written.map_err(|error| {
            onward_core::Error::unavailable(format!("can't be written: {error}")).at(path.display())
        })?;
    }
    Ok(Upgraded { before, now: newest })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that meets the unexpected has failed")]
mod tests {
    use super::*;
    use onward_core::{Engine, ErrorKind};
    use onward_embedded::{EmbeddedEngine, OpenOptions};
    use onward_env::SystemEnv;
    use onward_proves::proves;
    use std::{collections::BTreeMap, path::PathBuf, time::Duration};

    fn everything(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => found.extend(everything(&path)),
                false => drop(found.insert(path.clone(), std::fs::read(&path).unwrap())),
            }
        }
        found
    }

    fn open(dir: &Path) -> Result<EmbeddedEngine> {
        let options =
            OpenOptions { segment_bytes: 64 << 10, reserve_bytes: 64 << 10, ..OpenOptions::default() };
        EmbeddedEngine::open(dir, options, SystemEnv::shared())
    }

    /// The next version knows one format more. It reads the folder as it is, and its upgrade is what shuts this one out.
    #[tokio::test]
    #[proves("LOG21")]
    async fn the_next_versions_upgrade_is_explicit_and_this_version_then_refuses_the_folder_without_writing()
    {
        let next = outside::FORMAT + 1;
        let folder = tempfile::tempdir().unwrap();
        let engine = open(folder.path()).unwrap();
        let error = upgrade(folder.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists, "a folder in use was upgraded: {error}");
        engine.close(Duration::from_secs(5)).await.unwrap();
        drop(engine);
        let same = upgrade(folder.path()).unwrap();
        assert_eq!((same.before, same.now), (outside::FORMAT, outside::FORMAT));

        // Until it is upgraded, both versions open it.
        let format = |known| outside::check_format_up_to(outside::format_line().as_bytes(), known);
        assert_eq!((format(next).unwrap(), format(outside::FORMAT).unwrap()), (1, 1));
        let upgraded = upgrade_to(folder.path(), next).unwrap();
        assert_eq!((upgraded.before, upgraded.now), (outside::FORMAT, next));
        let before = everything(folder.path());
        assert_eq!(open(folder.path()).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(upgrade(folder.path()).unwrap_err().kind(), ErrorKind::Unsupported);
        assert!(everything(folder.path()) == before, "the refused folder has changed");
        assert_eq!(upgrade_to(folder.path(), next).unwrap().before, next);
    }
}
