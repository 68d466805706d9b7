//! A drawing of which parts of a tensor differ.

/// At most this many cells across and down.
const WIDTH: u64 = 64;
const HEIGHT: u64 = 16;

/// Counts by cell. Cell `c` of an axis has the indices `i` with `i * scale >> 32 == c`.
#[derive(Clone, Debug)]
pub(super) struct Map {
    rows: Axis,
    columns: Axis,
    counts: Vec<u64>,
    /// The first cell of the current row.
    row: usize,
}

#[derive(Clone, Copy, Debug)]
struct Axis {
    extent: u64,
    cells: u64,
    scale: u64,
}

impl Axis {
    fn new(extent: u64, cells: u64) -> Axis {
        let extent = extent.max(1);
        let cells = cells.min(extent);
        // Rounded up, so that an extent of whole cells is divided evenly.
        Axis { extent, cells, scale: (cells << 32).div_ceil(extent) }
    }

    fn cell(self, index: u64) -> u64 {
        // The product is below 2^64: index < extent, and scale is at most one more than 2^38 / extent.
        let product = u128::from(index) * u128::from(self.scale);
        ((product >> 32) as u64).min(self.cells - 1)
    }

    /// The first index of a cell.
    fn start(self, cell: u64) -> u64 {
        if cell == self.cells { self.extent } else { (cell << 32).div_ceil(self.scale) }
    }
}

impl Map {
    pub(super) fn new(shape: &[u64]) -> Map {
        let (columns, rows) = shape.split_last().map_or((1, 1), |(&last, outer)| (last, outer.iter().product()));
        let (rows, columns) = (Axis::new(rows, HEIGHT), Axis::new(columns, WIDTH));
        Map { rows, columns, counts: vec![0; (rows.cells * columns.cells) as usize], row: 0 }
    }

    pub(super) fn enter_row(&mut self, row: u64) {
        self.row = (self.rows.cell(row) * self.columns.cells) as usize;
    }

    /// Counts the marked ones of the elements from this column of the row on, and tells how many they are.
    pub(super) fn add(&mut self, column: u64, marks: &[bool]) -> u64 {
        let (mut column, mut rest, mut total) = (column, marks, 0);
        while !rest.is_empty() {
            let cell = self.columns.cell(column);
            let width = self.columns.start(cell + 1) - column;
            let (marks, later) = rest.split_at(width.min(rest.len() as u64) as usize);
            let count = count(marks);
            self.counts[self.row + cell as usize] += count;
            (column, rest, total) = (column + marks.len() as u64, later, total + count);
        }
        total
    }

    pub(super) fn join(&mut self, other: &Map) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
    }

    /// Lines: the first row of each line of cells, and the cells; at last what the signs mean.
    pub(super) fn draw(&self) -> Vec<String> {
        let digits = self.rows.extent.to_string().len();
        let lines = self.counts.chunks(self.columns.cells as usize).zip(0..);
        let mut drawn: Vec<String> = lines
            .map(|(counts, row)| {
                let height = self.rows.start(row + 1) - self.rows.start(row);
                let signs = counts.iter().zip(0..).map(|(&count, column)| {
                    let width = self.columns.start(column + 1) - self.columns.start(column);
                    sign(count, height * width)
                });
                format!("{:>digits$} |{}|", self.rows.start(row), signs.collect::<String>())
            })
            .collect();
        let (across, down) = (self.columns.start(1), self.rows.start(1));
        drawn.push(format!("cell: {down} × {across}; . none, - under 10 %, + under all, # all differ"));
        drawn
    }
}

fn count(marks: &[bool]) -> u64 {
    // Bytes hold what 128 bytes add up to, and vectors of bytes are the widest.
    marks.chunks(128).map(|marks| u64::from(marks.iter().map(|&mark| u8::from(mark)).sum::<u8>())).sum()
}

fn sign(count: u64, of: u64) -> char {
    match count {
        0 => '.',
        _ if count >= of => '#',
        _ if count < of / 10 => '-',
        _ => '+',
    }
}
