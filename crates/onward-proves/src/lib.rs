//! The attribute by which a test names the statements that it proves.
//!
//! `#[proves("LOG4", "T50")]` above a test changes nothing of it: `cargo xtask checklist` reads the sources,
//! joins the numbers with the results of the run and prints each statement with its tests.
//! A number that `docs/checklist.md` does not have is an error there.

use proc_macro::TokenStream;

/// Names the statements of `docs/checklist.md` that the test below shows, as string literals.
#[proc_macro_attribute]
pub fn proves(statements: TokenStream, test: TokenStream) -> TokenStream {
    let empty = statements.is_empty();
    if empty {
        return "compile_error!(\"name at least one statement: #[proves(\\\"T50\\\")]\");"
            .parse()
            .unwrap_or(test);
    }
    test
}
