//! Every package that is built in has a licence that asks for no more than its text.

use super::Finding;
use crate::workspace::{Package, all_packages};
use anyhow::Result;

/// Permissive licences: they ask to keep their text, or nothing.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

pub(super) fn check() -> Result<Vec<Finding>> {
    Ok(all_packages()?.iter().filter_map(finding).collect())
}

fn finding(package: &Package) -> Option<Finding> {
    let licence = package.license.as_deref().unwrap_or("none named");
    let what = format!("{} {} has the licence `{licence}`", package.name, package.version);
    let mend = "do without it, or add a permissive licence to xtask/src/tidy/licences.rs";
    (!is_allowed(licence)).then(|| Finding::new("Cargo.lock", 1, what, mend))
}

/// Whether a licence expression can be met with allowed licences alone. `/` is the old way to write `OR`.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    either(&mut rest) == Some(true) && rest.is_empty()
}

fn either(words: &mut &[&str]) -> Option<bool> {
    let mut allowed = both(words)?;
    while words.first() == Some(&"OR") {
        *words = &words[1..];
        allowed |= both(words)?;
    }
    Some(allowed)
}

fn both(words: &mut &[&str]) -> Option<bool> {
    let mut allowed = one(words)?;
    while words.first() == Some(&"AND") {
        *words = &words[1..];
        allowed &= one(words)?;
    }
    Some(allowed)
}

fn one(words: &mut &[&str]) -> Option<bool> {
    let (first, rest) = words.split_first()?;
    *words = rest;
    if *first == "(" {
        let allowed = either(words)?;
        let (close, rest) = words.split_first()?;
        *words = rest;
        return (*close == ")").then_some(allowed);
    }
    let mut licence = (*first).to_owned();
    if let ["WITH", exception, rest @ ..] = *words {
        licence = format!("{licence} WITH {exception}");
        *words = rest;
    }
    Some(ALLOWED.contains(&licence.as_str()))
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn a_choice_is_allowed_when_one_side_is_and_a_sum_when_all_are() {
        for good in ["MIT", "GPL-3.0 OR MIT", "MIT/Apache-2.0", "(MIT OR GPL-2.0) AND Unicode-3.0"] {
            assert!(is_allowed(good), "{good}");
        }
        for bad in
            ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND MPL-2.0", "none named", "", "MIT OR", "(MIT"]
        {
            assert!(!is_allowed(bad), "{bad}");
        }
    }

    #[test]
    fn an_exception_is_part_of_its_licence() {
        assert!(is_allowed("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT"));
        assert!(is_allowed("Apache-2.0 WITH LLVM-exception"));
        assert!(!is_allowed("MIT WITH odd-exception"));
    }
}
