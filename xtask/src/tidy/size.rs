//! The ratchet of file sizes: a new file is short, a long one only shrinks.

use super::Finding;
use super::files::File;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// A file of more lines stands in the ratchet.
const LINES_MAX: usize = 300;
/// No file has more, the ratchet or not.
const LINES_EVER: usize = 800;
const RATCHET: &str = "xtask/tidy-ratchet.txt";

type Sizes = BTreeMap<String, usize>;

pub(super) fn check(root: &Path, files: &[File]) -> Result<Vec<Finding>> {
    Ok(compare(&long(files), &read(root)?))
}

/// Writes the present sizes of the long files.
pub(super) fn bless(root: &Path, files: &[File]) -> Result<()> {
    let path = root.join(RATCHET);
    std::fs::write(&path, write(&long(files))).with_context(|| format!("cannot write {}", path.display()))
}

fn long(files: &[File]) -> Sizes {
    let sizes =
        files.iter().filter(|file| file.is_rust()).map(|file| (file.path.clone(), file.text.lines().count()));
    sizes.filter(|(_, lines)| *lines > LINES_MAX).collect()
}

fn compare(long: &Sizes, ratchet: &Sizes) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |path: &str, what: String, mend: &str| findings.push(Finding::new(path, 1, what, mend));
    for (path, lines) in long {
        let allowed = ratchet.get(path).copied().unwrap_or(LINES_MAX).min(LINES_EVER);
        if *lines > allowed {
            add(path, format!("{lines} lines, {allowed} allowed"), "split it by what its parts are about");
        } else if ratchet.get(path).is_some_and(|old| lines < old) {
            add(
                path,
                format!("shrank to {lines} lines"),
                "run `cargo xtask tidy --bless`, so that it stays so",
            );
        }
    }
    for path in ratchet.keys().filter(|path| !long.contains_key(*path)) {
        add(path, "stands in the ratchet and is long no more".into(), "run `cargo xtask tidy --bless`");
    }
    findings
}

fn read(root: &Path) -> Result<Sizes> {
    let path = root.join(RATCHET);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&text).with_context(|| format!("in {}", path.display()))
}

fn parse(text: &str) -> Result<Sizes> {
    let entry = |line: &str| {
        let (lines, path) = line.split_once(' ').with_context(|| format!("`{line}` is not `LINES PATH`"))?;
        Ok((path.to_owned(), lines.parse().with_context(|| format!("`{lines}` is no number of lines"))?))
    };
    text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(entry).collect()
}

fn write(sizes: &Sizes) -> String {
    let head = format!(
        "# Files of more than {LINES_MAX} lines, which may only shrink; never more than {LINES_EVER}.\n"
    );
    sizes.iter().fold(head, |text, (path, lines)| text + &format!("{lines} {path}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lines: usize, ratchet: &[(&str, usize)]) -> Vec<String> {
        let files = [super::super::file("a.rs", &"x\n".repeat(lines))];
        let ratchet = ratchet.iter().map(|(path, lines)| ((*path).to_owned(), *lines)).collect();
        compare(&long(&files), &ratchet).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_new_file_is_at_most_300_lines() {
        assert!(found(300, &[]).is_empty());
        assert_eq!(found(301, &[]), ["301 lines, 300 allowed"]);
    }

    #[test]
    fn a_long_file_may_only_shrink_and_what_it_won_is_kept() {
        assert!(found(400, &[("a.rs", 400)]).is_empty());
        assert_eq!(found(401, &[("a.rs", 400)]), ["401 lines, 400 allowed"]);
        assert_eq!(found(399, &[("a.rs", 400)]), ["shrank to 399 lines"]);
        assert_eq!(found(200, &[("a.rs", 400)]), ["stands in the ratchet and is long no more"]);
    }

    #[test]
    fn the_ratchet_allows_no_file_above_800_lines() {
        assert_eq!(found(900, &[("a.rs", 900)]), ["900 lines, 800 allowed"]);
    }

    #[test]
    fn what_is_written_is_read_again_and_nonsense_is_refused() {
        let sizes: Sizes = [("src/a b.rs".to_owned(), 301)].into();
        assert_eq!(parse(&write(&sizes)).unwrap(), sizes);
        assert!(parse("many src/a.rs\n").is_err());
    }
}
