//! Builds what the tests need and learns from cargo which binaries there are.

use crate::workspace::{Workspace, target_label};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::path::PathBuf;
use std::process::Stdio;

/// One built test binary.
#[derive(Debug)]
pub(crate) struct Binary {
    pub(crate) package: String,
    pub(crate) target: String,
    pub(crate) executable: PathBuf,
    pub(crate) dir: PathBuf,
}

/// What a build left behind.
#[derive(Debug, Default)]
pub(crate) struct Built {
    pub(crate) tests: Vec<Binary>,
    /// The command `onward`, where the same build made it.
    pub(crate) onward: Option<PathBuf>,
    pub(crate) complete: bool,
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    package_id: Option<String>,
    target: Option<Artifact>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
    success: Option<bool>,
}

#[derive(Deserialize)]
struct Artifact {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Builds every target of `packages` (all when empty), benches and examples too, so that none rots.
pub(crate) fn tests(workspace: &Workspace, packages: &[String]) -> Result<Built> {
    let mut arguments = vec!["test".to_owned(), "--all-targets".into(), "--no-run".into()];
    arguments.extend(selection(packages));
    read_build(workspace, &arguments)
}

/// The command `onward`, which tests of several crates start as a process.
pub(crate) fn onward(workspace: &Workspace) -> Result<Option<PathBuf>> {
    if workspace.package("onward-cli").and_then(|cli| cli.binary("onward")).is_none() {
        return Ok(None);
    }
    let arguments = ["build", "--workspace", "--bin", "onward"].map(str::to_owned);
    Ok(read_build(workspace, &arguments)?.onward)
}

/// `-p` for each package, or the whole workspace.
pub(crate) fn selection(packages: &[String]) -> Vec<String> {
    if packages.is_empty() {
        return vec!["--workspace".to_owned()];
    }
    packages.iter().flat_map(|name| ["-p".to_owned(), name.clone()]).collect()
}

fn read_build(workspace: &Workspace, arguments: &[String]) -> Result<Built> {
    let mut command = workspace.cargo();
    command.args(arguments).arg("--message-format=json-render-diagnostics");
    let output =
        command.stderr(Stdio::inherit()).stdout(Stdio::piped()).output().context("cannot start cargo")?;
    let mut built = Built::default();
    for line in String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.starts_with('{')) {
        let message = serde_json::from_str(line).context("cargo reported a build in an unknown form")?;
        take(workspace, message, &mut built);
    }
    built.complete &= output.status.success();
    Ok(built)
}

fn take(workspace: &Workspace, message: Message, built: &mut Built) {
    if message.reason == "build-finished" {
        built.complete = message.success.unwrap_or(false);
    }
    let (Some(target), Some(executable), Some(profile)) =
        (message.target, message.executable, message.profile)
    else {
        return;
    };
    let package = workspace.members.iter().find(|package| Some(&package.id) == message.package_id.as_ref());
    let Some(package) = package else { return };
    let label = target_label(&target.kind, &target.name);
    if label == "bin:onward" && !profile.test {
        built.onward = Some(executable);
    } else if profile.test && !label.starts_with("bench:") && !label.starts_with("example:") {
        let (package, dir) = (package.name.clone(), package.dir().to_owned());
        built.tests.push(Binary { package, target: label, executable, dir });
    }
}
