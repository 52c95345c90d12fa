//! What `cargo metadata` says of the workspace, and how cargo is called from here.

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    workspace_root: PathBuf,
    target_directory: PathBuf,
}

/// One package, as far as the tasks need it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    pub(crate) manifest_path: PathBuf,
    pub(crate) targets: Vec<Target>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// One thing that cargo builds of a package.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: PathBuf,
    #[serde(default, rename = "required-features")]
    pub(crate) required_features: Vec<String>,
}

/// A dependency as its manifest declares it; `kind` is `None` for a normal one.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Option<String>,
}

/// The workspace that the task was called in.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) members: Vec<Package>,
    target: PathBuf,
}

impl Workspace {
    /// Reads the workspace around the current folder.
    pub(crate) fn load() -> Result<Self> {
        let all = metadata(&["--no-deps"])?;
        let members = all.packages.into_iter().filter(|p| all.workspace_members.contains(&p.id)).collect();
        Ok(Self { root: all.workspace_root, members, target: all.target_directory })
    }

    /// The folder of what the tasks keep: results, claims, reports.
    pub(crate) fn results_dir(&self) -> Result<PathBuf> {
        let dir = self.target.join("onward");
        std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        Ok(dir)
    }

    /// A cargo command in the workspace's root, its own output away from stdout.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root).stdin(Stdio::null());
        command
    }

    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.members.iter().find(|package| package.name == name)
    }

    /// `path` as seen from the root, with forward slashes.
    pub(crate) fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned()
    }
}

impl Package {
    pub(crate) fn dir(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new("."))
    }

    pub(crate) fn has_library(&self) -> bool {
        self.targets.iter().any(|target| target.label() == "lib")
    }

    pub(crate) fn binary(&self, name: &str) -> Option<&Target> {
        self.targets.iter().find(|target| target.name == name && target.is("bin"))
    }
}

impl Target {
    pub(crate) fn is(&self, kind: &str) -> bool {
        self.kind.iter().any(|own| own == kind)
    }

    /// The name by which results and claims meet: `lib`, `bin:onward`, `test:recovery`.
    pub(crate) fn label(&self) -> String {
        target_label(&self.kind, &self.name)
    }
}

/// See [`Target::label`]; also used on what cargo reports while it builds.
pub(crate) fn target_label(kind: &[String], name: &str) -> String {
    let known = ["bin", "test", "bench", "example", "custom-build"];
    match kind.iter().find(|kind| known.contains(&kind.as_str())) {
        Some(kind) => format!("{kind}:{name}"),
        None => "lib".to_owned(),
    }
}

/// Every package that the build on this machine uses, the dependencies' dependencies included.
pub(crate) fn all_packages() -> Result<Vec<Package>> {
    Ok(metadata(&["--filter-platform", &host_triple()?])?.packages)
}

/// Cargo without what an outer `cargo run` tells its child: that would rebuild what reads it.
fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let outer = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(outer)) {
        command.env_remove(name);
    }
    command
}

fn metadata(arguments: &[&str]) -> Result<Metadata> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--quiet"]).args(arguments);
    let output = command.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("`cargo metadata` failed: {}", output.status);
    }
    serde_json::from_slice(&output.stdout).context("`cargo metadata` printed what is not its JSON")
}

fn host_triple() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("`rustc -vV` names no host")
}
