//! `cargo xtask tidy`: what holds for every file of the project, checked.

mod absent;
mod files;
mod layers;
mod licences;
mod links;
mod manifests;
mod size;
mod tokens;

use crate::ui::{Human, say};
use crate::workspace::Workspace;
use anyhow::Result;
use serde::Serialize;

/// Choices of `cargo xtask tidy`.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Print one JSON object for each finding on stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the present sizes of long files into xtask/tidy-ratchet.txt
    #[arg(long)]
    pub(crate) bless: bool,
}

/// Something that must be mended.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Finding {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) what: String,
    pub(crate) mend: String,
}

impl Finding {
    fn new(file: &str, line: usize, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, what: what.into(), mend: mend.into() }
    }
}

/// Checks everything; `true` when nothing was found.
pub(crate) fn tidy(workspace: &Workspace, options: &Options) -> Result<bool> {
    let files = files::all(&workspace.root)?;
    if options.bless {
        size::bless(&workspace.root, &files)?;
    }
    let mut findings = size::check(&workspace.root, &files)?;
    findings.extend(absent::check(&files)?);
    findings.extend(layers::check(workspace));
    findings.extend(manifests::check(workspace, &files));
    findings.extend(links::check(&workspace.root, &files));
    findings.extend(licences::check()?);
    findings.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    let human = Human { json: options.json };
    for finding in &findings {
        if options.json {
            say(serde_json::to_string(finding)?);
        } else {
            human.line(format!("{}:{}: {}\n    {}", finding.file, finding.line, finding.what, finding.mend));
        }
    }
    human.line(format!("tidy: {} files looked at, {} to mend", files.len(), findings.len()));
    Ok(findings.is_empty())
}

/// A source file for the tests of the checks.
#[cfg(test)]
fn file(path: &str, text: &str) -> files::File {
    files::File { path: path.to_owned(), text: text.to_owned() }
}
