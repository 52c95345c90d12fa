//! Each crate's manifest takes from the workspace what is common, and each crate says what it is.

use super::Finding;
use super::files::File;
use crate::workspace::{Package, Workspace};

/// Lines that every manifest has.
const INHERITED: [&str; 6] = [
    "version.workspace = true",
    "edition.workspace = true",
    "rust-version.workspace = true",
    "license.workspace = true",
    "publish.workspace = true",
    "workspace = true",
];

pub(super) fn check(workspace: &Workspace, files: &[File]) -> Vec<Finding> {
    let text = |path: &str| files.iter().find(|file| file.path == path);
    let mut findings = Vec::new();
    for package in &workspace.members {
        let path = workspace.relative(&package.manifest_path);
        findings.extend(text(&path).map(|file| manifest(&path, &file.text)).unwrap_or_default());
        let roots = roots(package).map(|root| workspace.relative(root));
        findings.extend(roots.filter_map(|root| text(&root)).filter_map(without_doc));
    }
    findings
}

fn roots(package: &Package) -> impl Iterator<Item = &std::path::Path> {
    let told = |label: &str| label == "lib" || label.starts_with("bin:") || label.starts_with("example:");
    package.targets.iter().filter(move |target| told(&target.label())).map(|target| target.src_path.as_path())
}

fn without_doc(file: &File) -> Option<Finding> {
    let first = file.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let mend = "begin it with `//!` and one sentence";
    (!first.starts_with("//!")).then(|| Finding::new(&file.path, 1, "the crate doesn't say what it is", mend))
}

fn manifest(path: &str, text: &str) -> Vec<Finding> {
    let has = |wanted: &str| text.lines().any(|line| line.trim() == wanted);
    let missing = INHERITED.iter().filter(|wanted| !has(wanted));
    let mut findings: Vec<_> = missing.map(|wanted| lacks(path, wanted)).collect();
    let (mut in_dependencies, mut depth, mut own_table) = (false, 0_i32, None);
    for (index, line) in text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.starts_with('#')) {
        if depth == 0 && line.starts_with('[') {
            findings.extend(own_table.take());
            in_dependencies = line.ends_with("dependencies]");
            own_table = line.contains("dependencies.").then(|| versioned(path, index + 1, line));
        } else if depth == 0 && in_dependencies && !line.is_empty() && !is_inherited(line) {
            findings.push(versioned(path, index + 1, line));
        } else if line == "workspace = true" {
            own_table = None;
        }
        depth += balance(line);
    }
    findings.extend(own_table);
    findings
}

fn is_inherited(line: &str) -> bool {
    line.contains("workspace = true")
}

/// How many brackets a line opens and leaves open.
fn balance(line: &str) -> i32 {
    line.chars().fold(0, |open, c| match c {
        '[' | '{' => open + 1,
        ']' | '}' => open - 1,
        _ => open,
    })
}

fn lacks(path: &str, wanted: &str) -> Finding {
    let wanted = if wanted == INHERITED[5] { "[lints] workspace = true" } else { wanted };
    Finding::new(
        path,
        1,
        format!("`{wanted}` is not here"),
        "take it from the workspace, as the other crates do",
    )
}

fn versioned(path: &str, line: usize, what: &str) -> Finding {
    let mend = "name the version in the root's [workspace.dependencies] and write `workspace = true` here";
    Finding::new(path, line, format!("`{what}` isn't taken from the workspace"), mend)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "[package]\nname = \"a\"\nversion.workspace = true\nedition.workspace = true\n\
        rust-version.workspace = true\nlicense.workspace = true\npublish.workspace = true\n\n[lints]\nworkspace = true\n\n";

    fn lines(rest: &str) -> Vec<usize> {
        manifest("Cargo.toml", &format!("{HEAD}{rest}")).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_dependency_with_its_own_version_is_found() {
        assert!(lines("[dependencies]\nserde.workspace = true\nb = { workspace = true, features = [\n  \"x\",\n] }\n").is_empty());
        assert_eq!(lines("[dev-dependencies]\nserde = \"1\"\n"), [13]);
        assert_eq!(lines("[dependencies.serde]\nversion = \"1\"\n"), [12]);
        assert!(lines("[dependencies.serde]\nworkspace = true\n").is_empty());
    }

    #[test]
    fn a_key_that_is_not_inherited_is_found() {
        let text = HEAD.replace("edition.workspace = true", "edition = \"2021\"");
        let findings = manifest("Cargo.toml", &text);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].what.contains("edition.workspace"), "{findings:?}");
    }

    #[test]
    fn a_crate_without_its_sentence_is_found() {
        assert!(without_doc(&super::super::file("a.rs", "\n//! What it is.\n")).is_none());
        assert!(without_doc(&super::super::file("a.rs", "use std::io;\n//! late\n")).is_some());
    }
}
