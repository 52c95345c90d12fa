//! What every command works with: the data folder, the clock, the output.

use crate::{exit::Outcome, output::Output};
use onward::{Folder, FolderOptions};
use onward_core::{Engine, Env, Error, Inlet, Name, Topology};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::OnceCell;

/// How long a command that hosts the folder lets the calls of others end before it goes.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// What every command works with.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) data_dir: PathBuf,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) out: Arc<Output>,
    opened: OnceCell<Arc<Folder>>,
}

impl Context {
    /// Nothing is opened yet.
    pub(crate) fn new(data_dir: PathBuf, env: Arc<dyn Env>, out: Arc<Output>) -> Self {
        Self { data_dir, env, out, opened: OnceCell::new() }
    }

    /// The folder's engine; the folder is made when it is not there.
    pub(crate) async fn open(&self) -> Outcome<Arc<dyn Engine>> {
        let open = || onward::open_folder(&self.data_dir, FolderOptions::default(), self.env.clone());
        let folder: Arc<dyn Engine> = self.opened.get_or_try_init(open).await?.clone();
        Ok(folder)
    }

    /// Gives back what is open: leases, the folder, the way to its host.
    pub(crate) async fn close(&self) {
        if let Some(folder) = self.opened.get() {
            // The command's own answer is given; what a close can't do, the process's end does.
            let _ = folder.close(CLOSE_WAIT).await;
        }
    }

    /// The folder's engine, for commands that make no sense on a folder that is not there.
    pub(crate) async fn open_existing(&self) -> Outcome<Arc<dyn Engine>> {
        self.require_folder()?;
        self.open().await
    }

    /// Refuses a data folder that is not there.
    pub(crate) fn require_folder(&self) -> Outcome<()> {
        match self.data_dir.is_dir() {
            true => Ok(()),
            false => Err(Error::not_found("there is no data folder")
                .at(self.data_dir.display())
                .mend("name it with --data-dir or ONWARD_DATA_DIR; `onward enqueue` makes one")
                .into()),
        }
    }
}

/// Refuses an inlet that does not exist, with the nearest one that does.
pub(crate) fn require_inlet(topology: &Topology, inlet: &Inlet) -> Outcome<()> {
    if topology.inlets.iter().any(|(known, _)| known == inlet) {
        return Ok(());
    }
    let wanted = inlet.to_string();
    let names = topology.inlets.iter().map(|(known, _)| known.to_string());
    let mend = match nearest(&wanted, names) {
        Some(near) => format!("did you mean `{near}`? `onward queues` lists them"),
        None => match inlet {
            Inlet::Queue(_) => "`onward queues` lists them; `onward enqueue` makes one".to_owned(),
            Inlet::Subscription { .. } => {
                format!("`onward subscriptions` lists them; `onward subscribe {wanted}` makes one")
            }
        },
    };
    let what = match inlet {
        Inlet::Queue(_) => "there is no such queue",
        Inlet::Subscription { .. } => "there is no such subscription",
    };
    Err(Error::not_found(what).at(wanted).mend(mend).into())
}

/// Refuses a topic that does not exist, with the nearest one that does.
pub(crate) fn require_topic(topology: &Topology, topic: &Name) -> Outcome<()> {
    if topology.topics.iter().any(|(known, _)| known == topic) {
        return Ok(());
    }
    let names = topology.topics.iter().map(|(known, _)| known.to_string());
    let mend = match nearest(&topic.to_string(), names) {
        Some(near) => format!("did you mean `{near}`? `onward topics` lists them"),
        None => "`onward topics` lists them; `onward topics declare` makes one".to_owned(),
    };
    Err(Error::not_found("there is no such topic").at(topic).mend(mend).into())
}

/// The topic and the name of a subscription, where only a subscription makes sense.
pub(crate) fn subscription_name(inlet: &Inlet) -> Outcome<(Name, Arc<str>)> {
    match inlet {
        Inlet::Subscription { topic, name } => Ok((topic.clone(), name.clone())),
        Inlet::Queue(name) => Err(Error::invalid("is not a subscription")
            .at(inlet)
            .mend(format!("name it with its topic, as in `{name}:analytics`"))
            .into()),
    }
}

/// The name of a queue, where only a queue makes sense.
pub(crate) fn queue_name(inlet: &Inlet) -> Outcome<Name> {
    match inlet {
        Inlet::Queue(name) => Ok(name.clone()),
        Inlet::Subscription { .. } => Err(Error::invalid("is a subscription, not a queue")
            .at(inlet)
            .mend("name a queue; messages come to a subscription by `onward publish TOPIC`")
            .into()),
    }
}

/// The candidate nearest to a misspelt word, if one is near enough to be meant.
pub(crate) fn nearest(word: &str, candidates: impl IntoIterator<Item = String>) -> Option<String> {
    let near = candidates.into_iter().map(|c| (strsim::osa_distance(word, &c), c)).min_by_key(|(d, _)| *d);
    near.filter(|(d, _)| *d <= 2.max(word.len() / 3)).map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_proves::proves;

    #[test]
    #[proves("T53")]
    fn a_misspelt_name_is_told_the_nearest_one_and_a_strange_one_is_not() {
        let names = || ["emails", "thumbnails"].map(String::from);
        assert_eq!(nearest("emials", names()).as_deref(), Some("emails"));
        assert_eq!(nearest("thumbnail", names()).as_deref(), Some("thumbnails"));
        assert_eq!(nearest("orders", names()), None);
    }
}
