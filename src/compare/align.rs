//! Aligns two lists of instructions: the longest common subsequence of opcodes, where equal texts
//! count more.
//!
//! The table has a cell for each pair of positions near the diagonal. Beyond [`CELLS`] cells the
//! band around it becomes narrower, so that time and memory stay bounded.

/// Most cells of the table.
const CELLS: usize = 1 << 25;

/// What a pair is worth: the same opcode, and the same text.
const SAME_OPCODE: u32 = 2;
const SAME_TEXT: u32 = 3;

/// A step of the alignment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Left,
    Right,
    Both,
}

/// An instruction to align: its opcode and its text.
pub type Item = (&'static str, String);

/// A row of the alignment: positions on the left and on the right, at least one of them.
pub type Row = (Option<usize>, Option<usize>);

/// Aligns two lists. Every position occurs once, in order.
pub fn align(left: &[Item], right: &[Item]) -> Vec<Row> {
    let (rows, columns) = (left.len(), right.len());
    let half = (CELLS / (rows + 1)).max(MIN_BAND);
    let centre = |row: usize| (row as u128 * columns as u128 / rows.max(1) as u128) as usize;
    let first = |row: usize| centre(row).saturating_sub(half);
    let end = |row: usize| (centre(row) + half).min(columns) + 1;
    // steps[row] has the best step from each cell of the band; worth is that of the row below.
    let mut steps: Vec<Vec<Step>> = vec![Vec::new(); rows + 1];
    let mut below: Vec<u32> = Vec::new();
    let mut below_first = 0;
    for row in (0..=rows).rev() {
        let (from, to) = (first(row), end(row));
        let mut worth = vec![0u32; to - from];
        let mut taken = vec![Step::Right; to - from];
        let down = |column: usize| column.checked_sub(below_first).and_then(|i| below.get(i)).copied();
        for column in (from..to).rev() {
            let mut best = (0, if row < rows { Step::Left } else { Step::Right });
            if let Some(worth) = worth.get(column + 1 - from).filter(|_| column < columns) {
                best = (*worth, Step::Right);
            }
            if let Some(worth) = down(column).filter(|worth| row < rows && *worth >= best.0) {
                best = (worth, Step::Left);
            }
            if row < rows && column < columns && left[row].0 == right[column].0 {
                let more = if left[row].1 == right[column].1 { SAME_TEXT } else { SAME_OPCODE };
                if let Some(worth) = down(column + 1).filter(|worth| worth + more >= best.0) {
                    best = (worth + more, Step::Both);
                }
            }
            (worth[column - from], taken[column - from]) = best;
        }
        (below, below_first) = (worth, from);
        steps[row] = taken;
    }
    let mut out = Vec::with_capacity(rows.max(columns));
    let (mut row, mut column) = (0, 0);
    while row < rows || column < columns {
        let known = column.checked_sub(first(row)).and_then(|i| steps[row].get(i)).copied();
        let step = match known {
            _ if row == rows => Step::Right,
            _ if column == columns => Step::Left,
            // Below the band the left side goes on, above it the right side.
            None if column >= end(row) => Step::Left,
            None => Step::Right,
            Some(step) => step,
        };
        let (down, along) = (step != Step::Right, step != Step::Left);
        out.push((down.then_some(row), along.then_some(column)));
        (row, column) = (row + usize::from(down), column + usize::from(along));
    }
    out
}

/// Least half of the band.
const MIN_BAND: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn items(text: &str) -> Vec<Item> {
        let name = |c: char| match c.to_ascii_uppercase() {
            'A' => "A",
            'B' => "B",
            'C' => "C",
            _ => "D",
        };
        text.chars().map(|c| (name(c), c.to_string())).collect()
    }

    fn shown(left: &str, right: &str) -> String {
        let one = |text: &str, at: Option<usize>| at.map_or('-', |at| text.chars().nth(at).unwrap());
        let rows = align(&items(left), &items(right));
        let row = |(a, b): &Row| format!("{}{}", one(left, *a), one(right, *b));
        rows.iter().map(row).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn common_opcodes_stand_side_by_side() {
        assert_eq!(shown("ABCD", "ABCD"), "AA BB CC DD");
        assert_eq!(shown("ABD", "ACD"), "AA B- -C DD");
        assert_eq!(shown("", "AB"), "-A -B");
        assert_eq!(shown("AB", ""), "A- B-");
        // Of two equal opcodes the one with the same text is taken.
        assert_eq!(shown("a", "Aa"), "-A aa");
        assert_eq!(shown("aA", "A"), "a- AA");
    }

    #[test]
    fn long_lists_take_bounded_time() {
        let left = items(&"ABCD".repeat(5000));
        let mut right = items(&"ABCD".repeat(5000));
        right.splice(100..100, items("DDBB"));
        let rows = align(&left, &right);
        assert_eq!(rows.iter().filter(|(a, b)| a.is_some() && b.is_some()).count(), left.len());
        assert_eq!(rows.len(), left.len() + 4);
    }
}
