//! What a Rust source names, macro calls included and comments and strings excluded.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::str::FromStr;

/// What kind of mention it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Path,
    Call,
    Macro,
    /// An attribute; `true` when it gives a `reason`.
    Attribute(bool),
}

/// One name in the code, such as `std::thread::sleep`, and where it stands.
#[derive(Debug, PartialEq)]
pub(crate) struct Mention {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) line: usize,
    pub(crate) in_test: bool,
}

/// Every mention in `source`; `None` where it is no Rust.
pub(crate) fn mentions(source: &str, is_test: bool) -> Option<Vec<Mention>> {
    let mut mentions = Vec::new();
    walk(TokenStream::from_str(source).ok()?, "", is_test, &mut mentions);
    Some(mentions)
}

/// `prefix` is what stands before the braces of `use a::{b, c}`.
fn walk(stream: TokenStream, prefix: &str, in_test: bool, mentions: &mut Vec<Mention>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let (mut at, mut test_item) = (0, false);
    while at < tokens.len() {
        if let Some((length, attribute)) = attribute(&tokens[at..]) {
            test_item |= marks_test(&attribute);
            note_attribute(&attribute, in_test || test_item, mentions);
            at += length;
            continue;
        }
        match &tokens[at] {
            TokenTree::Ident(ident) => {
                let (length, path) = path(&tokens[at..]);
                let name = if prefix.is_empty() { path } else { format!("{prefix}::{path}") };
                let (line, start) = (ident.span().start().line, at);
                at += length;
                let defined = start.checked_sub(1).is_some_and(|before| is_ident(&tokens[before], "fn"));
                let kind = if defined { Kind::Path } else { kind(&tokens[at..]) };
                if let Some(inner) = import_group(&tokens[at..]) {
                    walk(inner, &name, in_test || test_item, mentions);
                    at += 3;
                } else {
                    mentions.push(Mention { name, kind, line, in_test: in_test || test_item });
                }
            }
            TokenTree::Group(group) => {
                walk(group.stream(), "", in_test || test_item, mentions);
                test_item &= group.delimiter() != Delimiter::Brace;
                at += 1;
            }
            other => {
                test_item &= !is_punct(Some(other), ';');
                at += 1;
            }
        }
    }
}

/// `#[..]` or `#![..]`: how many tokens, and what stands inside.
fn attribute(tokens: &[TokenTree]) -> Option<(usize, TokenStream)> {
    let at = if is_punct(tokens.get(1), '!') { 2 } else { 1 };
    match (is_punct(tokens.first(), '#'), tokens.get(at)) {
        (true, Some(TokenTree::Group(group))) if group.delimiter() == Delimiter::Bracket => {
            Some((at + 1, group.stream()))
        }
        _ => None,
    }
}

fn note_attribute(attribute: &TokenStream, in_test: bool, mentions: &mut Vec<Mention>) {
    let tokens: Vec<TokenTree> = attribute.clone().into_iter().collect();
    let Some(TokenTree::Ident(first)) = tokens.first() else { return };
    let line = first.span().start().line;
    let (length, name) = path(&tokens);
    let reason = match tokens.get(length) {
        Some(TokenTree::Group(group)) => has_ident(group.stream(), "reason"),
        Some(_) => true,
        None => false,
    };
    mentions.push(Mention { name, kind: Kind::Attribute(reason), line, in_test });
}

/// `#[test]`, `#[tokio::test]` and `#[cfg(test)]`, but not `#[cfg(not(test))]`.
fn marks_test(attribute: &TokenStream) -> bool {
    let tokens: Vec<TokenTree> = attribute.clone().into_iter().collect();
    let (length, name) = path(&tokens);
    let in_cfg = |group: &TokenStream| has_ident(group.clone(), "test") && !has_ident(group.clone(), "not");
    match tokens.get(length) {
        Some(TokenTree::Group(group)) if name == "cfg" => in_cfg(&group.stream()),
        _ => name.rsplit("::").next() == Some("test"),
    }
}

/// `a::b::c` at the start of `tokens`: how many tokens, and its text.
fn path(tokens: &[TokenTree]) -> (usize, String) {
    let (mut text, mut at) = (String::new(), 0);
    while let Some(TokenTree::Ident(ident)) = tokens.get(at) {
        text += &ident.to_string();
        at += 1;
        let more = is_double_colon(&tokens[at..]) && matches!(tokens.get(at + 2), Some(TokenTree::Ident(_)));
        if !more {
            break;
        }
        text += "::";
        at += 2;
    }
    (at, text)
}

/// The `{..}` of `::{..}`, as imports have it.
fn import_group(rest: &[TokenTree]) -> Option<TokenStream> {
    match rest.get(2) {
        Some(TokenTree::Group(group)) if is_double_colon(rest) && group.delimiter() == Delimiter::Brace => {
            Some(group.stream())
        }
        _ => None,
    }
}

fn kind(rest: &[TokenTree]) -> Kind {
    match rest.first() {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => Kind::Call,
        bang if is_punct(bang, '!') && matches!(rest.get(1), Some(TokenTree::Group(_))) => Kind::Macro,
        _ => Kind::Path,
    }
}

fn is_double_colon(tokens: &[TokenTree]) -> bool {
    is_punct(tokens.first(), ':') && is_punct(tokens.get(1), ':')
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn is_ident(token: &TokenTree, wanted: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == wanted)
}

fn has_ident(stream: TokenStream, wanted: &str) -> bool {
    stream.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == wanted,
        TokenTree::Group(group) => has_ident(group.stream(), wanted),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str) -> Vec<String> {
        let all = mentions(source, false).unwrap();
        all.into_iter().filter(|m| m.name.contains("::")).map(|m| format!("{}:{}", m.line, m.name)).collect()
    }

    #[test]
    fn paths_are_found_in_code_imports_and_macro_calls_with_their_line() {
        assert_eq!(names("fn a() {\n  x(std::time::Instant::now());\n}"), ["2:std::time::Instant::now"]);
        assert_eq!(names("use tokio::time::{self, sleep};"), ["1:tokio::time::self", "1:tokio::time::sleep"]);
        assert_eq!(names("select! { _ = time::sleep(d) => {} }"), ["1:time::sleep"]);
    }

    #[test]
    fn comments_and_strings_name_nothing() {
        assert!(names("//! a::b\n/// c::d\nfn x() { let s = \"e::f\"; } // g::h").is_empty());
    }

    fn in_test(source: &str, name: &str) -> bool {
        mentions(source, false).unwrap().iter().any(|m| m.name == name && m.in_test)
    }

    #[test]
    fn test_code_is_told_from_the_code_beside_it() {
        let source = "#[cfg(test)] mod tests { fn a() { one() } } fn b() { two() } #[tokio::test] async fn c() { three() }";
        assert!(in_test(source, "one") && in_test(source, "three"));
        assert!(!in_test(source, "two"));
        assert!(!in_test("#[cfg(not(test))] fn a() { one() }", "one"));
        assert!(!in_test("#[cfg(test)] mod tests; fn a() { one() }", "one"));
    }

    #[test]
    fn an_attribute_tells_whether_it_gives_a_reason() {
        let kinds = |source| mentions(source, false).unwrap()[0].kind;
        assert_eq!(kinds("#[allow(dead_code)] fn a() {}"), Kind::Attribute(false));
        assert_eq!(kinds("#![allow(dead_code, reason = \"x\")]"), Kind::Attribute(true));
    }

    #[test]
    fn calls_and_macros_are_told_from_paths() {
        let of = |source, name| {
            mentions(source, false).unwrap().into_iter().find(|m| m.name == name).map(|m| m.kind)
        };
        assert_eq!(of("fn f() { a.sleep(b) }", "sleep"), Some(Kind::Call));
        assert_eq!(of("fn sleep(b: B) {}", "sleep"), Some(Kind::Path));
        assert_eq!(of("fn f() { todo!() }", "todo"), Some(Kind::Macro));
        assert_eq!(of("fn f() { if todo != (b) {} }", "todo"), Some(Kind::Path));
    }
}
