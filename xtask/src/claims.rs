//! Which test claims which statement: `#[proves("T12")]` found by parsing the sources.

use crate::statements::Number;
use crate::workspace::{Target, Workspace};
use anyhow::{Context, Result};
use proc_macro2::{TokenStream, TokenTree};
use std::path::{Path, PathBuf};
use syn::punctuated::Punctuated;
use syn::{Attribute, Item, LitStr, Token};

/// One statement claimed by one test.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Claim {
    pub(crate) statement: Number,
    pub(crate) package: String,
    pub(crate) target: String,
    /// The test's path inside its binary, as the test runner prints it.
    pub(crate) test: String,
    pub(crate) place: String,
}

/// Every claim in the sources of the workspace.
pub(crate) fn find(workspace: &Workspace) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    for package in &workspace.members {
        let tested = |target: &&Target| target.label() == "lib" || target.is("bin") || target.is("test");
        for target in package.targets.iter().filter(tested) {
            let mut found = Vec::new();
            let root = Module::root(&target.src_path);
            walk(&root, workspace, &mut found)?;
            claims.extend(found.into_iter().map(|(statement, test, place)| Claim {
                statement,
                package: package.name.clone(),
                target: target.label(),
                test,
                place,
            }));
        }
    }
    Ok(claims)
}

type Found = (Number, String, String);

/// One source file as a module: where its own submodules lie, and its path in the crate.
struct Module {
    file: PathBuf,
    children: PathBuf,
    path: Vec<String>,
}

impl Module {
    fn root(file: &Path) -> Self {
        Self { file: file.to_owned(), children: file.with_file_name(""), path: Vec::new() }
    }

    /// The file of `mod name;`, if there is one (it may be left out by `cfg`).
    fn child(&self, name: &str, attributes: &[Attribute]) -> Option<Self> {
        let path = [self.path.clone(), vec![name.to_owned()]].concat();
        if let Some(given) = attributes.iter().find_map(path_attribute) {
            let file = self.file.with_file_name(given);
            return file.exists().then(|| Self { children: file.with_file_name(""), file, path });
        }
        let flat = self.children.join(format!("{name}.rs"));
        let nested = self.children.join(name).join("mod.rs");
        let file = [flat, nested].into_iter().find(|file| file.exists())?;
        Some(Self { file, children: self.children.join(name), path })
    }
}

fn walk(module: &Module, workspace: &Workspace, found: &mut Vec<Found>) -> Result<()> {
    let name = workspace.relative(&module.file);
    let text = std::fs::read_to_string(&module.file).with_context(|| format!("cannot read {name}"))?;
    let file = syn::parse_file(&text).with_context(|| format!("cannot parse {name}"))?;
    let mut files = Vec::new();
    items(&file.items, module, &name, found, &mut files)?;
    files.iter().try_for_each(|child| walk(child, workspace, found))
}

fn items(
    items_: &[Item],
    module: &Module,
    file: &str,
    found: &mut Vec<Found>,
    files: &mut Vec<Module>,
) -> Result<()> {
    for item in items_ {
        match item {
            Item::Fn(function) => {
                let name = function.sig.ident.to_string();
                for attribute in function.attrs.iter().filter(|a| is_proves(a)) {
                    add(attribute.parse_args_with(Punctuated::parse_terminated), &name, module, file, found)?;
                }
            }
            Item::Macro(item) => in_macro(item.mac.tokens.clone(), module, file, found)?,
            Item::Mod(inner) => {
                let name = inner.ident.to_string();
                match &inner.content {
                    None => files.extend(module.child(&name, &inner.attrs)),
                    Some((_, content)) => {
                        let path = [module.path.clone(), vec![name.clone()]].concat();
                        let children = module.children.join(&name);
                        let module = Module { file: module.file.clone(), children, path };
                        items(content, &module, file, found, files)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Tests written inside a macro call, as `proptest!` has them: `#[proves(..)] .. fn name`.
fn in_macro(tokens: TokenStream, module: &Module, file: &str, found: &mut Vec<Found>) -> Result<()> {
    let (mut claims, mut after_fn): (Vec<TokenStream>, bool) = (Vec::new(), false);
    for token in tokens {
        match token {
            TokenTree::Group(group) => claims.extend(proves_arguments(group.stream())),
            TokenTree::Ident(ident) if after_fn => {
                after_fn = false;
                for arguments in claims.drain(..) {
                    let parser = Punctuated::parse_terminated;
                    add(
                        syn::parse::Parser::parse2(parser, arguments),
                        &ident.to_string(),
                        module,
                        file,
                        found,
                    )?;
                }
            }
            TokenTree::Ident(ident) => after_fn = ident == "fn",
            _ => after_fn = false,
        }
    }
    Ok(())
}

/// `proves("T1")` or `onward_proves::proves("T1")` -> `"T1"`.
fn proves_arguments(attribute: TokenStream) -> Option<TokenStream> {
    let tokens: Vec<_> = attribute.into_iter().collect();
    match tokens.as_slice() {
        [.., TokenTree::Ident(name), TokenTree::Group(arguments)] if name == "proves" => {
            Some(arguments.stream())
        }
        _ => None,
    }
}

fn add(
    arguments: syn::Result<Punctuated<LitStr, Token![,]>>,
    test: &str,
    module: &Module,
    file: &str,
    found: &mut Vec<Found>,
) -> Result<()> {
    let test = [module.path.as_slice(), &[test.to_owned()]].concat().join("::");
    let arguments =
        arguments.with_context(|| format!("{file}: the claims of `{test}` are no string literals"))?;
    for literal in &arguments {
        let place = format!("{file}:{}", literal.span().start().line);
        let number = literal.value().parse().with_context(|| place.clone())?;
        found.push((number, test.clone(), place));
    }
    Ok(())
}

fn is_proves(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "proves")
}

fn path_attribute(attribute: &Attribute) -> Option<String> {
    let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
    let syn::Expr::Lit(value) = &pair.value else { return None };
    match (&value.lit, pair.path.is_ident("path")) {
        (syn::Lit::Str(path), true) => Some(path.value()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims_of(source: &str) -> Result<Vec<String>> {
        let module = Module { file: "src/a.rs".into(), children: "src/a".into(), path: vec!["a".into()] };
        let (mut found, mut files) = (Vec::new(), Vec::new());
        items(&syn::parse_file(source)?.items, &module, "src/a.rs", &mut found, &mut files)?;
        Ok(found.into_iter().map(|(number, test, place)| format!("{number} {test} {place}")).collect())
    }

    #[test]
    fn a_claim_names_the_test_with_its_modules_and_its_line() {
        let source = "mod tests {\n#[proves(\"T1\", \"LOG4\")]\n#[test]\nfn holds() {}\n}";
        let expected = ["T1 a::tests::holds src/a.rs:2", "LOG4 a::tests::holds src/a.rs:2"];
        assert_eq!(claims_of(source).unwrap(), expected);
    }

    #[test]
    fn claims_by_full_path_and_inside_a_macro_call_are_found() {
        let source = "#[onward_proves::proves(\"T1\")] fn a() {}
            proptest! { #[test] #[proves(\"T2\")] fn b(x in 0..3) { assert!(x < 3) } #[test] fn c() {} }";
        assert_eq!(claims_of(source).unwrap(), ["T1 a::a src/a.rs:1", "T2 a::b src/a.rs:2"]);
    }

    #[test]
    fn a_comment_or_a_string_is_no_claim() {
        let source = "// #[proves(\"T1\")]\nfn a() { let _ = \"#[proves(\\\"T2\\\")]\"; }";
        assert!(claims_of(source).unwrap().is_empty());
    }

    #[test]
    fn a_claim_that_is_no_number_is_an_error_with_its_place() {
        let error = format!("{:#}", claims_of("#[proves(\"t1\")] fn a() {}").unwrap_err());
        assert!(error.contains("src/a.rs:1"), "{error}");
        assert!(claims_of("#[proves(T1)] fn a() {}").is_err());
    }

    #[test]
    fn submodules_are_looked_for_where_rust_does() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        let (root, flat, nested) = (file("lib.rs"), file("a/b.rs"), file("a/b/c/mod.rs"));
        file("a.rs");
        let b = Module::root(&root).child("a", &[]).unwrap().child("b", &[]).unwrap();
        let c = b.child("c", &[]).unwrap();
        assert_eq!((b.file.clone(), c.file.clone()), (flat, nested));
        assert_eq!(c.path, ["a", "b", "c"]);
        assert!(b.child("missing", &[]).is_none());
    }
}
