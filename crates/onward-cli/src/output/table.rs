//! Tables for people: columns padded with spaces, so that `grep` and `awk` work on them too.

use super::Style;
use unicode_width::UnicodeWidthStr;

/// Rows under a heading; numbers stand to the right.
#[derive(Debug)]
pub(crate) struct Table {
    heading: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns; a column whose heading begins with `>` stands to the right.
    pub(crate) fn new(heading: &[&'static str]) -> Self {
        Self { heading: heading.to_vec(), rows: Vec::new() }
    }

    /// Adds a row, as many cells as there are columns.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.heading.len());
        self.rows.push(cells);
    }

    /// The whole as text, each line with its end.
    pub(crate) fn render(&self, style: Style) -> String {
        let names: Vec<String> = self.heading.iter().map(|h| h.trim_start_matches('>').to_owned()).collect();
        let widths: Vec<usize> = (0..names.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| row[column].width());
                cells.chain([names[column].width()]).max().unwrap_or(0)
            })
            .collect();
        let mut text = style.bold(&self.line(&names, &widths)) + "\n";
        for row in &self.rows {
            text += &(self.line(row, &widths) + "\n");
        }
        text
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let padded = cells.iter().zip(widths).zip(&self.heading).map(|((cell, width), heading)| {
            let pad = " ".repeat(width.saturating_sub(cell.width()));
            if heading.starts_with('>') { pad + cell } else { cell.clone() + &pad }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_numbers_stand_to_the_right() {
        let mut table = Table::new(&["NAME", ">DEPTH", "NOTE"]);
        table.row(vec!["a".into(), "1".into(), "é".into()]);
        table.row(vec!["longer".into(), "1000000".into(), String::new()]);
        let text = table.render(Style::for_terminal(false));
        assert_eq!(text, "NAME      DEPTH  NOTE\na             1  é\nlonger  1000000\n");
    }
}
