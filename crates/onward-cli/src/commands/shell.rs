//! `onward completions` and `onward man`: made from the command line itself.

use crate::{
    args::Cli,
    context::Context,
    exit::{Exit, Outcome},
};
use clap::CommandFactory;
use onward_core::Error;
use std::path::PathBuf;

pub(crate) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  onward completions bash > ~/.local/share/bash-completion/completions/onward
  onward completions fish > ~/.config/fish/completions/onward.fish";

pub(crate) const MAN_EXAMPLES: &str = "\
Examples:
  onward man | man -l -
  onward man --dir ~/.local/share/man/man1";

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this folder, which must exist
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints the completions of one shell.
pub(crate) fn completions(context: &Context, args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "onward", &mut script);
    context.out.write(&script);
    Ok(Exit::Ok)
}

/// Prints the man page, or writes all of them.
pub(crate) fn man(context: &Context, args: &ManArgs) -> Outcome {
    if let Some(dir) = &args.dir {
        let wrong = |e: std::io::Error| Error::not_found(format!("can't write: {e}")).at(dir.display());
        if !dir.is_dir() {
            return Err(Error::not_found("there is no such folder")
                .at(dir.display())
                .mend("make it first")
                .into());
        }
        clap_mangen::generate_to(Cli::command(), dir).map_err(wrong)?;
        context.out.note(format!("man pages written to {}", dir.display()));
        return Ok(Exit::Ok);
    }
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
    rendered.map_err(|e| Error::internal(format!("the man page can't be made: {e}")))?;
    context.out.write(&page);
    Ok(Exit::Ok)
}
