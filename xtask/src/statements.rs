//! The numbered statements of `docs/checklist.md`, and choices among them.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A statement's number: capital letters and a number, such as `T12` or `LOG4`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Number {
    series: String,
    number: u32,
}

impl FromStr for Number {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let series: String = text.chars().take_while(char::is_ascii_uppercase).collect();
        let digits = &text[series.len()..];
        let plain = digits.chars().all(|c| c.is_ascii_digit()) && !digits.starts_with('0');
        if series.is_empty() || digits.is_empty() || !plain {
            bail!("`{text}` is no statement number: write capital letters and a number, such as T12");
        }
        let number = digits.parse().with_context(|| format!("`{text}` is out of range"))?;
        Ok(Self { series, number })
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.series, self.number)
    }
}

/// The statements in the order of the document.
#[derive(Debug)]
pub(crate) struct Statements {
    order: Vec<Number>,
    text: BTreeMap<Number, String>,
}

impl Statements {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("in {}", path.display()))
    }

    /// Takes every list line `- NUMBER text`; other lines are prose, other list lines an error.
    pub(crate) fn parse(document: &str) -> Result<Self> {
        let mut all = Self { order: Vec::new(), text: BTreeMap::new() };
        for (index, line) in document.lines().enumerate() {
            let Some(item) = line.strip_prefix("- ") else { continue };
            all.add(item).with_context(|| format!("line {}", index + 1))?;
        }
        Ok(all)
    }

    fn add(&mut self, item: &str) -> Result<()> {
        let (number, text) = item.split_once(' ').context("a statement needs a text after its number")?;
        let number: Number = number.parse()?;
        if self.text.insert(number.clone(), text.trim().to_owned()).is_some() {
            bail!("{number} stands twice: give the new one the next free number");
        }
        self.order.push(number);
        Ok(())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Number, &str)> {
        self.order.iter().map(|number| (number, self.text[number].as_str()))
    }

    pub(crate) fn contains(&self, number: &Number) -> bool {
        self.text.contains_key(number)
    }
}

/// A choice such as `T1,T2` or `LOG1-LOG22,T13`.
#[derive(Clone, Debug)]
pub(crate) struct Choice(Vec<(Number, Number)>);

impl FromStr for Choice {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        text.split(',').map(|part| range(part.trim())).collect::<Result<_>>().map(Self)
    }
}

impl Choice {
    pub(crate) fn holds(&self, number: &Number) -> bool {
        self.0.iter().any(|(first, last)| first <= number && number <= last)
    }

    /// The ends of the ranges that the document doesn't have.
    pub(crate) fn unknown(&self, statements: &Statements) -> Vec<String> {
        let ends = self.0.iter().flat_map(|(first, last)| [first, last]);
        let mut missing: Vec<_> = ends.filter(|n| !statements.contains(n)).map(Number::to_string).collect();
        missing.dedup();
        missing
    }
}

fn range(text: &str) -> Result<(Number, Number)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let first: Number = first.parse()?;
    let last = if last.starts_with(|c: char| c.is_ascii_digit()) {
        format!("{}{last}", first.series).parse()?
    } else {
        last.parse::<Number>()?
    };
    if first.series != last.series || first > last {
        bail!("`{text}` is no range: both ends are of one series, the lower first, such as LOG1-LOG22");
    }
    Ok((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str =
        "# Title\n\nProse with - T9 in it.\n\n- T1 first\n- T10 tenth\n- T2 second\n- LOG1 log\n";

    #[test]
    fn statements_keep_the_order_of_the_document() {
        let statements = Statements::parse(DOCUMENT).unwrap();
        let found: Vec<_> = statements.iter().map(|(n, text)| format!("{n}={text}")).collect();
        assert_eq!(found, ["T1=first", "T10=tenth", "T2=second", "LOG1=log"]);
    }

    #[test]
    fn a_number_that_stands_twice_is_refused_with_its_line() {
        let error = format!("{:#}", Statements::parse("- T1 a\n- T1 b\n").unwrap_err());
        assert!(error.contains("line 2") && error.contains("T1 stands twice"), "{error}");
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for bad in ["t1", "T", "12", "T01", "T1x", "T99999999999", ""] {
            assert!(bad.parse::<Number>().is_err(), "{bad} was taken");
        }
    }

    #[test]
    fn a_range_is_by_number_not_by_spelling() {
        let choice: Choice = "T1-T2,LOG1-3".parse().unwrap();
        let holds = |text: &str| choice.holds(&text.parse().unwrap());
        assert!(holds("T1") && holds("T2") && holds("LOG3"));
        assert!(!holds("T10") && !holds("LOG4") && !holds("T3"));
    }

    #[test]
    fn a_range_over_two_series_or_backwards_is_refused() {
        assert!("T1-LOG3".parse::<Choice>().is_err());
        assert!("T3-T1".parse::<Choice>().is_err());
    }

    #[test]
    fn a_chosen_number_that_the_document_lacks_is_named() {
        let statements = Statements::parse(DOCUMENT).unwrap();
        let choice: Choice = "T1-T3".parse().unwrap();
        assert_eq!(choice.unknown(&statements), ["T3"]);
    }
}
