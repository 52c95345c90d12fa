//! Every relative link of the documents leads to a file that is there.

use super::Finding;
use super::files::File;
use std::path::Path;

pub(super) fn check(root: &Path, files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_markdown()) {
        let dir = root.join(&file.path).with_file_name("");
        for (line, target) in links(&file.text) {
            let path = target.split('#').next().unwrap_or_default();
            if !path.is_empty() && !dir.join(path).exists() {
                let what = format!("the link to `{target}` leads nowhere");
                findings.push(Finding::new(&file.path, line, what, "name the file from where this one lies"));
            }
        }
    }
    findings
}

/// Relative link targets with their lines; code is left out.
fn links(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut in_code) = (Vec::new(), false);
    for (index, line) in text.lines().enumerate() {
        in_code ^= line.trim_start().starts_with("```");
        let prose = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
        for part in prose.split("](").skip(1).filter(|_| !in_code) {
            let target = part.split([')', ' ']).next().unwrap_or_default();
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push((index + 1, target.to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_links_are_found_and_code_and_addresses_are_not() {
        let text = "[a](docs/a.md#top) and [b](b.md \"title\")\n```\n[c](c.md)\n```\n`[d](d.md)` [e](https://e.org) [`f`](f.md)";
        let expected = [(1, "docs/a.md#top"), (1, "b.md"), (5, "f.md")];
        assert_eq!(links(text), expected.map(|(line, target)| (line, target.to_owned())));
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found_with_its_line() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("docs")).unwrap();
        std::fs::write(dir.path().join("docs/b.md"), "").unwrap();
        let file = super::super::file("docs/a.md", "[b](b.md#x)\n[c](c.md)\n[here](#top)\n");
        let findings = check(dir.path(), &[file]);
        assert_eq!(findings.iter().map(|f| f.line).collect::<Vec<_>>(), [2]);
    }
}
