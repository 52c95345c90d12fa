//! A list whose copy is made fast: it is shared by boards, and a board is copied when one of its items changes.

use std::sync::Arc;

/// Items of a board.
const BOARD: usize = 64;

/// Items by number.
#[derive(Debug, Clone)]
pub(crate) struct Shelf<T> {
    boards: Vec<Arc<Vec<T>>>,
    len: usize,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { boards: Vec::new(), len: 0 }
    }
}

impl<T: Clone> Shelf<T> {
    pub(crate) fn push(&mut self, item: T) -> u32 {
        if self.len.is_multiple_of(BOARD) {
            self.boards.push(Arc::new(Vec::new()));
        }
        if let Some(board) = self.boards.last_mut() {
            Arc::make_mut(board).push(item);
        }
        self.len += 1;
        (self.len - 1) as u32
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        self.boards.get(number as usize / BOARD)?.get(number as usize % BOARD)
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        Arc::make_mut(self.boards.get_mut(number as usize / BOARD)?).get_mut(number as usize % BOARD)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.boards.iter().flat_map(|board| board.iter())
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.boards.iter_mut().flat_map(|board| Arc::make_mut(board).iter_mut())
    }
}
