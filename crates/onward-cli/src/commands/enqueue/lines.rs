//! Lines with the place that each came from: a file, stdin, an argument.

use crate::exit::Outcome;
use onward_core::{Error, PAYLOAD_BYTES_CEILING};
use std::{
    fs::File,
    io::{BufRead, BufReader, Read, stdin},
    path::Path,
};

/// Longest line, in bytes: the largest payload as base64 with a full envelope around it.
const LINE_BYTES_MAX: usize = PAYLOAD_BYTES_CEILING / 3 * 4 + 256 * 1024;

/// One line and where it stands.
#[derive(Debug)]
pub(in crate::commands) struct Item {
    /// `messages.jsonl:12`, `stdin:3`, `argument 1`.
    pub(in crate::commands) place: String,
    /// The line, or why it could not be read.
    pub(in crate::commands) text: Result<Vec<u8>, Error>,
}

/// Lines of one source; blank ones are left out.
pub(in crate::commands) enum Lines {
    Arguments(std::iter::Enumerate<std::vec::IntoIter<String>>),
    Stream { name: String, line: u64, reader: Box<dyn BufRead>, failed: bool },
}

impl Lines {
    /// Command line arguments, each one line.
    pub(in crate::commands) fn arguments(texts: Vec<String>) -> Self {
        Self::Arguments(texts.into_iter().enumerate())
    }

    /// What comes in on stdin.
    pub(in crate::commands) fn stdin() -> Self {
        Self::stream("stdin", stdin())
    }

    /// A file, or stdin for `-`.
    ///
    /// # Errors
    /// `NotFound` when it can't be opened.
    pub(in crate::commands) fn file(path: &Path) -> Outcome<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::stdin());
        }
        let wrong =
            |what: String| Error::not_found(what).at(path.display()).mend("name a file that can be read");
        let file = File::open(path).map_err(|e| wrong(format!("can't be opened: {e}")))?;
        if path.is_dir() {
            return Err(wrong("is a folder".to_owned()).into());
        }
        Ok(Self::stream(&path.display().to_string(), file))
    }

    fn stream(name: &str, reader: impl Read + 'static) -> Self {
        let reader = Box::new(BufReader::with_capacity(64 * 1024, reader));
        Self::Stream { name: name.to_owned(), line: 0, reader, failed: false }
    }
}

impl Iterator for Lines {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        match self {
            Self::Arguments(texts) => texts.next().map(|(index, text)| Item {
                place: format!("argument {}", index + 1),
                text: Ok(text.into_bytes()),
            }),
            Self::Stream { failed: true, .. } => None,
            Self::Stream { name, line, reader, failed } => loop {
                *line += 1;
                let text = next_line(reader).transpose()?;
                *failed = matches!(&text, Err(error) if error.kind() != onward_core::ErrorKind::Invalid);
                if text.as_ref().is_ok_and(|text| text.trim_ascii().is_empty()) {
                    continue;
                }
                return Some(Item { place: format!("{name}:{line}"), text });
            },
        }
    }
}

/// The next line without its end; `None` at the end. A line that is too long is skipped and told.
fn next_line(reader: &mut dyn BufRead) -> Result<Option<Vec<u8>>, Error> {
    let failed = |e: std::io::Error| Error::unavailable(format!("can't be read any further: {e}"));
    let mut line = Vec::new();
    let read = reader.take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line).map_err(failed)?;
    if read == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if read > LINE_BYTES_MAX {
        reader.skip_until(b'\n').map_err(failed)?;
        return Err(Error::invalid(format!("the line has more than {LINE_BYTES_MAX} bytes"))
            .mend("put the payload into object storage and send a reference (claim check)"));
    }
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onward_proves::proves;

    fn items(text: Vec<u8>) -> Vec<Item> {
        Lines::stream("x", std::io::Cursor::new(text)).collect()
    }

    #[test]
    fn each_line_knows_its_number_and_blank_ones_are_left_out() {
        let found = items(b"{}\n\n  \r\n{\"a\":1}".to_vec());
        let places: Vec<&str> = found.iter().map(|item| item.place.as_str()).collect();
        assert_eq!(places, ["x:1", "x:4"]);
        assert_eq!(found[1].text.as_ref().unwrap(), b"{\"a\":1}");
    }

    #[test]
    #[proves("T54", "LOG9")]
    fn a_line_beyond_the_bound_is_refused_without_being_kept_and_the_next_one_is_read() {
        let mut text = vec![b'x'; LINE_BYTES_MAX + 10];
        text.extend(b"\n{}\n");
        let found = items(text);
        assert!(found[0].text.as_ref().unwrap_err().to_string().contains("more than"));
        assert_eq!(
            (found[1].place.as_str(), found[1].text.as_ref().unwrap().as_slice()),
            ("x:2", &b"{}"[..])
        );
    }
}
