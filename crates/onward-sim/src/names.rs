//! The names in a simulated folder; kept apart from the files, as a directory is.

use std::collections::BTreeMap;

/// Names of files, and which file each points to.
pub(crate) type Names = BTreeMap<String, usize>;

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Create(String, usize),
    Rename(String, String),
    Delete(String),
}

pub(crate) fn apply(names: &mut Names, change: &Change) {
    match change {
        Change::Create(name, inode) => {
            names.insert(name.clone(), *inode);
        }
        Change::Rename(from, to) => {
            if let Some(inode) = names.remove(from) {
                names.insert(to.clone(), inode);
            }
        }
        Change::Delete(name) => {
            names.remove(name);
        }
    }
}
