//! Who may copy to a destination: the highest claim is in force, and nobody can take the same one twice.

use crate::{
    destination::Destination,
    names::{self, LineNumber},
};
use onward_core::{Env, Error, Result, Timestamp};
use onward_embedded::outside;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, io::Write, path::Path};

/// In a data folder: which claims it holds, by destination.
const CLAIMS: &str = "claims";

/// What stands in a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    pub(crate) line: LineNumber,
    /// Tells claims apart that were made for the same number.
    nonce: String,
    pub(crate) made_at: Timestamp,
    /// The process, for people.
    pub(crate) by: String,
}

/// Which claim is in force at a destination, seen by a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// There is none.
    Free,
    /// It is this folder's.
    Ours(Claim),
    /// It was this folder's, and another one took over.
    Lost { ours: LineNumber, theirs: Claim },
    /// It is another folder's.
    Theirs(Claim),
}

/// The lines at a destination, in rising order.
pub(crate) async fn lines(at: &Destination) -> Result<Vec<LineNumber>> {
    let listed = at.list("claims").await?;
    let mut lines: Vec<_> = listed.iter().filter_map(|(name, _)| names::line_of_claim(name)).collect();
    lines.sort_unstable();
    Ok(lines)
}

/// The claim of a line.
pub(crate) async fn read(at: &Destination, line: LineNumber) -> Result<Option<Claim>> {
    let name = names::claim(line);
    let Some(bytes) = at.get(&name).await? else { return Ok(None) };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| names::damaged(&name, &format!("can't be read: {error}")))
}

/// Whose the claim in force is.
pub(crate) async fn standing(at: &Destination, dir: &Path) -> Result<Standing> {
    let Some(highest) = lines(at).await?.last().copied() else { return Ok(Standing::Free) };
    let theirs = read(at, highest).await?.ok_or_else(|| names::damaged(&names::claim(highest), "is gone"))?;
    Ok(match of_folder(dir)?.get(at.name()) {
        Some(ours) if *ours == theirs => Standing::Ours(theirs),
        Some(ours) if ours.line < highest => Standing::Lost { ours: ours.line, theirs },
        _ => Standing::Theirs(theirs),
    })
}

/// Whether a claim above `line` was made since.
pub(crate) async fn is_overtaken(at: &Destination, line: LineNumber) -> Result<Option<Claim>> {
    read(at, line + 1).await
}

/// Makes the claim behind `after` for a folder.
///
/// # Errors
/// `Conflict` when another one made it first.
pub(crate) async fn make(at: &Destination, dir: &Path, after: LineNumber, env: &dyn Env) -> Result<Claim> {
    let claim = Claim {
        line: after + 1,
        nonce: format!("{:016x}{:016x}", env.random(), env.random()),
        made_at: env.now(),
        by: format!("process {}", std::process::id()),
    };
    // First in the folder: a claim that the folder does not know of would look like another's.
    remember(dir, at.name(), &claim)?;
    let text = serde_json::to_vec(&claim).expect("numbers and strings always serialise");
    if at.put_new(&names::claim(claim.line), text.into()).await? {
        return Ok(claim);
    }
    Err(Error::conflict(format!("the claim {} was made by another process at the same time", claim.line))
        .at(at.name())
        .mend("one folder copies to one destination; look which process it is, then try again"))
}

/// Marks a folder as replaced, so that no engine opens it and one that has it open takes no more writes.
pub(crate) fn supersede(dir: &Path, at: &Destination, theirs: &Claim) -> Error {
    let text = format!(
        "superseded by claim {} of {} ({}) at {}\n",
        theirs.line,
        theirs.by,
        theirs.made_at,
        at.name()
    );
    // What can't be marked is told all the same, and again by the next attempt.
    let _ = write_whole(&dir.join(outside::SUPERSEDED), text.as_bytes());
    Error::conflict(format!("another folder took over at {} (claim {})", theirs.made_at, theirs.line))
        .at(at.name())
        .mend("go on with the folder that was promoted; this one takes no more writes")
}

/// The claims that a folder holds, by destination.
fn of_folder(dir: &Path) -> Result<BTreeMap<String, Claim>> {
    match std::fs::read(dir.join(CLAIMS)) {
        // A file that can't be read is as if there were none: then the claims in force are not ours.
        Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => {
            Err(Error::unavailable(format!("can't be read: {error}")).at(dir.join(CLAIMS).display()))
        }
    }
}

fn remember(dir: &Path, at: &str, claim: &Claim) -> Result<()> {
    let mut claims = of_folder(dir)?;
    claims.insert(at.to_owned(), claim.clone());
    let text = serde_json::to_vec(&claims).expect("numbers and strings always serialise");
    let path = dir.join(CLAIMS);
    write_whole(&path, &text)
        .map_err(|error| Error::unavailable(format!("can't be written: {error}")).at(path.display()))
}

/// Writes a file so that it is there whole, or as it was, and durable.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let new = path.with_extension("new");
    let mut file = std::fs::File::create(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    path.parent().map_or(Ok(()), |dir| std::fs::File::open(dir)?.sync_all())
}
