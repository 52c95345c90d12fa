//! A progress bar on stderr, or nothing.

use indicatif::{ProgressBar, ProgressStyle};

/// How far long work has come. Gone from the screen when dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(crate) fn new(shown: bool, total: Option<u64>, what: &str) -> Self {
        let bar = shown.then(|| {
            let template = match total {
                Some(_) => "{msg} {bar:30} {pos}/{len} {per_sec} {eta}",
                None => "{msg} {pos} {per_sec}",
            };
            let style = ProgressStyle::with_template(template).expect("a constant template");
            ProgressBar::new(total.unwrap_or(0)).with_style(style).with_message(what.to_owned())
        });
        Self { bar }
    }

    /// So many are done in all.
    pub(crate) fn at(&self, done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(done);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
