//! Tensor maps: their fields, and where the elements of a box of a tensor are (PTX ISA 5.5).
//!
//! A map that uses what is not known here (interleaved layouts, rounded or packed types, bits
//! without a name) is refused. A row of a box is a multiple of 16 bytes; rows lie in shared memory
//! one behind the other, and a swizzle permutes the units of 16 bytes there by their addresses.

use crate::tables::lowering::{MAP_FIELDS, MAP_TYPES, MapField};
use crate::tables::ptx::ScalarType;

/// Bytes of a map.
pub const BYTES: usize = 128;
/// Bytes of the units that are copied.
pub const UNIT: u64 = 16;
/// Least alignment of a map, and of a box in shared memory.
const MAP_ALIGN: u64 = 64;
pub const BOX_ALIGN: u64 = 128;
/// Most dimensions of a tensor.
pub const MOST: usize = 5;

/// The fields of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Global address of the element at the origin.
    pub address: u64,
    /// Elements of the tensor and of a box in each dimension.
    pub sizes: Vec<u64>,
    pub boxes: Vec<u64>,
    /// Distance of the elements of a box that are copied.
    pub steps: Vec<u64>,
    /// Bytes between neighbours in each dimension but the first.
    pub strides: Vec<u64>,
    pub ty: ScalarType,
    swizzle: Swizzle,
    /// Whether elements outside of the tensor are NaN, and not zero.
    pub nan: bool,
    /// Of a map of images, of which a row of a box has the channels of one pixel.
    image: Option<Image>,
}

/// Which pixels of an image a copy goes over.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Image {
    /// The first one in each dimension, and the last one beyond that of the tensor.
    lower: Vec<i64>,
    upper: Vec<i64>,
    /// Number of pixels of a copy.
    pixels: u64,
}

/// Which elements of a tensor a copy takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// A box with its corner at the coordinates.
    Tile,
    /// Parts of four rows: the coordinates are a column and the rows.
    Rows,
    /// Pixels in order from one on, each moved by offsets.
    Pixels(Vec<i64>),
}

/// Coordinates of gathered rows.
pub const GATHERED: usize = 5;

/// Which bits of an address in shared memory change: as many as there are from `to` on are combined
/// with those from `from` on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Swizzle {
    count: u32,
    from: u32,
    to: u32,
}

/// A unit of 16 bytes of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its address in shared memory.
    pub shared: u64,
    /// The global address of its first element.
    pub global: u64,
    /// Which bytes of it are in the tensor.
    pub inside: (u64, u64),
}

impl Swizzle {
    /// The pattern of a mode and an atomicity, and the bytes of a row that it takes.
    fn of(mode: u64, atomicity: u64) -> Option<(Swizzle, u64)> {
        Some(match (mode, atomicity) {
            (0, 0) => (Swizzle::default(), u64::MAX),
            (1, 0) => (Swizzle { count: 1, from: 7, to: 4 }, 32),
            (2, 0) => (Swizzle { count: 2, from: 7, to: 4 }, 64),
            (3, 0) => (Swizzle { count: 3, from: 7, to: 4 }, 128),
            (3, 1) => (Swizzle { count: 2, from: 7, to: 5 }, 128),
            _ => return None,
        })
    }

    fn address(self, at: u64) -> u64 {
        at ^ (at >> self.from & ((1 << self.count) - 1)) << self.to
    }
}

/// The bits of a map that a row names.
fn bits(map: &[u8; BYTES], row: &MapField) -> u64 {
    let (first, shift) = (usize::from(row.at / 8), row.at % 8);
    let bytes = map[first..].iter().take(9).enumerate();
    let word = bytes.fold(0u128, |word, (i, byte)| word | u128::from(*byte) << (8 * i));
    (word >> shift) as u64 & (u64::MAX >> (64 - u32::from(row.bits)))
}

/// Sets the bits of a map that a row names to its part of a value.
pub fn put(map: &mut [u8; BYTES], row: &MapField, value: u64) {
    let value = value.wrapping_sub(row.less.into()) >> row.shift;
    for bit in 0..u16::from(row.bits) {
        let (at, one) = (usize::from((row.at + bit) / 8), 1u8 << ((row.at + bit) % 8));
        map[at] = if value >> bit & 1 != 0 { map[at] | one } else { map[at] & !one };
    }
}

/// The rows of a field in a map, whose rank is set.
fn rows<'a>(map: &[u8; BYTES], name: &'a str, index: usize) -> impl Iterator<Item = &'static MapField> + use<'a> {
    let rank = MAP_FIELDS.iter().find(|row| row.field == "rank").map_or(0, |row| bits(map, row) + 1);
    let of_rank = move |row: &&MapField| row.rank == 0 || u64::from(row.rank) == rank;
    MAP_FIELDS.iter().filter(move |row| row.field == name && usize::from(row.index) == index && of_rank(row))
}

/// Sets a field of a map. The rank comes before the box of pixels.
pub fn set(map: &mut [u8; BYTES], name: &str, index: usize, value: u64) {
    rows(map, name, index).for_each(|row| put(map, row, value));
}

/// Sets what follows from the other fields: the bytes of a box, and its alignment in shared
/// memory.
pub fn complete(map: &mut [u8; BYTES]) {
    if let Ok(read) = TensorMap::read(0, map) {
        let rows = read.image.as_ref().map_or_else(|| read.counts()[1..].iter().product(), |image| image.pixels);
        set(map, "box_bytes", 0, rows * read.boxes[0] * read.width());
        let swizzled = field(map, "swizzle_mode", 0);
        set(map, "box_align", 0, if swizzled == 0 { UNIT } else { BOX_ALIGN << swizzled });
    }
}

/// The value of a field, of whose parts each row has one.
fn field(map: &[u8; BYTES], name: &str, index: usize) -> u64 {
    rows(map, name, index).fold(0, |value, row| value | (bits(map, row) + u64::from(row.less)) << row.shift)
}

/// The value of a field with a sign.
fn signed(map: &[u8; BYTES], name: &str, index: usize) -> i64 {
    let unused = 64 - rows(map, name, index).next().map_or(0, |row| u32::from(row.bits));
    ((field(map, name, index) << unused) as i64) >> unused
}

impl TensorMap {
    /// Reads a map at an address.
    ///
    /// # Errors
    ///
    /// A sentence: a map that is misaligned or not known.
    pub fn read(at: u64, map: &[u8; BYTES]) -> Result<TensorMap, String> {
        if !at.is_multiple_of(MAP_ALIGN) {
            return Err(format!("a tensor map is not aligned to {MAP_ALIGN} bytes"));
        }
        let mut rest = *map;
        for row in &MAP_FIELDS {
            put(&mut rest, row, row.less.into());
        }
        if let Some(byte) = rest.iter().position(|byte| *byte != 0) {
            return Err(format!("byte {byte:#x} of a tensor map has bits without a known meaning"));
        }
        let code = field(map, "elemtype", 0);
        let ty = MAP_TYPES.iter().find(|ty| u64::from(ty.code) == code && ty.ty.is_some());
        let ty = ty.filter(|_| field(map, "rounding", 0) == 0).and_then(|ty| ty.ty);
        let ty = ty.ok_or_else(|| format!("elements of type {code} of a tensor map are not known"))?;
        if field(map, "interleave_layout", 0) != 0 {
            return Err("interleaved tensors are not known".into());
        }
        let (mode, atomicity) = (field(map, "swizzle_mode", 0), field(map, "swizzle_atomicity", 0));
        let swizzle = Swizzle::of(mode, atomicity).filter(|_| field(map, "swizzle_96", 0) == 0);
        let (swizzle, span) = swizzle.ok_or("this swizzle of a tensor map is not known")?;
        let rank = field(map, "rank", 0) as usize + 1;
        if rank > MOST {
            return Err(format!("a tensor map of {rank} dimensions"));
        }
        let all = |name: &str, count: usize| (0..count).map(|i| field(map, name, i)).collect::<Vec<u64>>();
        let mut steps = all("element_stride", rank);
        // Elements of a row are always neighbours.
        steps[0] = 1;
        let boxes = all("box_dim", rank);
        let corner = |name: &str| (0..rank.saturating_sub(2)).map(|i| signed(map, name, i)).collect();
        let image = (field(map, "images", 0) != 0 && rank > 2).then(|| Image {
            lower: corner("pixel_box_lower"),
            upper: corner("pixel_box_upper"),
            pixels: field(map, "pixels_per_column", 0),
        });
        let row = boxes[0] * u64::from(ty.bits() / 8);
        if !row.is_multiple_of(UNIT) || span != u64::MAX && row != span {
            return Err(format!("a box of a tensor with rows of {row} bytes"));
        }
        Ok(TensorMap {
            address: field(map, "global_address", 0),
            sizes: all("global_dim", rank),
            boxes,
            steps,
            strides: all("global_stride", rank - 1),
            ty,
            swizzle,
            nan: field(map, "fill_mode", 0) != 0,
            image,
        })
    }

    /// Bytes of an element.
    pub fn width(&self) -> u64 {
        u64::from(self.ty.bits() / 8)
    }

    /// Elements of a box that are copied, in each dimension.
    fn counts(&self) -> Vec<u64> {
        self.boxes.iter().zip(&self.steps).map(|(size, step)| size.div_ceil(*step)).collect()
    }

    /// What stands for an element outside of the tensor.
    ///
    /// # Errors
    ///
    /// A sentence: a type of which this is not known.
    pub fn outside(&self) -> Result<u64, String> {
        match (self.nan, self.ty) {
            (false, _) => Ok(0),
            // The NaN that `fma.oob` knows.
            (true, ScalarType::F16 | ScalarType::Bf16) => Ok(0xffff),
            _ => Err(format!("NaN outside of a tensor of {}", self.ty.name())),
        }
    }

    /// The units at some coordinates and an address in shared memory, where they lie one behind the
    /// other, those outside of the tensor included.
    ///
    /// # Errors
    ///
    /// A sentence: coordinates of other dimensions, or a misaligned address.
    pub fn units(&self, shared: u64, corner: &[i32], taken: &Taken) -> Result<Vec<Unit>, String> {
        let rows = match taken {
            Taken::Tile => self.rows_of_box(corner),
            Taken::Rows => self.gathered(corner),
            Taken::Pixels(offsets) => self.pixels(corner, offsets),
        }?;
        if !shared.is_multiple_of(BOX_ALIGN) || !self.address.is_multiple_of(UNIT) {
            return Err(format!("a box at {shared:#x} or a tensor at {:#x} is misaligned", self.address));
        }
        let width = self.width();
        let per_unit = UNIT / width;
        let units_of_row = self.boxes[0] / per_unit;
        let mut out = Vec::new();
        for (row, places) in (0..).zip(rows) {
            let (mut at, mut there) = (self.address, true);
            for ((place, size), stride) in places.iter().zip(&self.sizes[1..]).zip(&self.strides) {
                there &= (0..*size as i64).contains(place);
                at = at.wrapping_add((*place as u64).wrapping_mul(*stride));
            }
            for unit in 0..units_of_row {
                let first = i64::from(corner[0]) + (unit * per_unit) as i64;
                let within = |place: i64| (place - first).clamp(0, per_unit as i64) as u64 * width;
                let inside = if there { (within(0), within(self.sizes[0] as i64)) } else { (0, 0) };
                out.push(Unit {
                    shared: self.swizzle.address(shared + (row * units_of_row + unit) * UNIT),
                    global: at.wrapping_add((first as u64).wrapping_mul(width)),
                    inside,
                });
            }
        }
        Ok(out)
    }

    fn check_dimensions(&self, corner: &[i32]) -> Result<(), String> {
        match (corner.len(), self.sizes.len()) {
            (given, rank) if given == rank => Ok(()),
            (given, rank) => Err(format!("{given} coordinates of a tensor of {rank} dimensions")),
        }
    }

    /// The places of the rows of a box, in all dimensions but the first.
    fn rows_of_box(&self, corner: &[i32]) -> Result<Vec<Vec<i64>>, String> {
        self.check_dimensions(corner)?;
        if self.image.is_some() {
            return Err("a box of a tensor whose map is one of images".into());
        }
        let counts = self.counts();
        let row = |mut rest: u64| {
            let place = |(i, count): (usize, &u64)| {
                let place = i64::from(corner[i]) + (rest % count * self.steps[i]) as i64;
                rest /= count;
                place
            };
            counts.iter().enumerate().skip(1).map(place).collect()
        };
        Ok((0..counts[1..].iter().product()).map(row).collect())
    }

    /// Four rows of a plane (PTX ISA 5.5.6).
    fn gathered(&self, corner: &[i32]) -> Result<Vec<Vec<i64>>, String> {
        if corner.len() != GATHERED || self.sizes.len() != 2 || self.boxes[1] != 1 || self.image.is_some() {
            return Err(format!("rows of a tensor of {} dimensions in boxes of {:?}", self.sizes.len(), self.boxes));
        }
        Ok(corner[1..].iter().map(|row| vec![i64::from(*row)]).collect())
    }

    /// The pixels of an image from some coordinates on (PTX ISA 5.5.4): along the first dimension
    /// of pixels up to the end of the box that the corners span, then in the next row of the box,
    /// and at last in the next image.
    fn pixels(&self, corner: &[i32], offsets: &[i64]) -> Result<Vec<Vec<i64>>, String> {
        self.check_dimensions(corner)?;
        let image = self.image.as_ref().ok_or("pixels of a tensor whose map is not one of images")?;
        let mut place: Vec<i64> = corner[1..].iter().map(|c| i64::from(*c)).collect();
        let moved = |place: &[i64]| place.iter().enumerate().map(|(i, p)| p + offsets.get(i).unwrap_or(&0)).collect();
        let mut all = Vec::new();
        for _ in 0..image.pixels {
            all.push(moved(&place));
            let ended = |i: usize, at: &mut i64| {
                *at += self.steps[i + 1] as i64;
                let over = *at > self.sizes[i + 1] as i64 - 1 + image.upper[i];
                if over {
                    *at = image.lower[i];
                }
                over
            };
            let spatial = image.lower.len();
            if (0..spatial).all(|i| ended(i, &mut place[i])) {
                place[spatial] += 1;
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(fields: &[(&str, u8, u64)]) -> [u8; BYTES] {
        let mut map = [0; BYTES];
        for (name, index, value) in fields {
            set(&mut map, name, usize::from(*index), *value);
        }
        map
    }

    const PLANE: [(&str, u8, u64); 8] = [
        ("global_address", 0, 0x1_2345_6780),
        ("rank", 0, 1),
        ("elemtype", 0, 7),
        ("global_dim", 0, 10),
        ("global_dim", 1, 3),
        ("global_stride", 0, 0xa_0000_0040),
        ("box_dim", 0, 8),
        ("box_dim", 1, 2),
    ];

    #[test]
    fn fields_are_read_as_they_were_written() {
        let plane = TensorMap::read(0, &map(&PLANE)).unwrap();
        assert_eq!((plane.address, plane.ty), (0x1_2345_6780, ScalarType::F32));
        assert_eq!((plane.sizes, plane.boxes, plane.strides), (vec![10, 3], vec![8, 2], vec![0xa_0000_0040]));
    }

    /// The words of maps that the driver made; what follows is zero.
    #[test]
    fn maps_are_those_of_the_driver() {
        let words = |words: [u32; 19]| {
            let mut map = [0; BYTES];
            map.chunks_mut(4).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
            map
        };
        let mut cube = map(&[
            ("global_address", 0, 0x7_0000_0000),
            ("rank", 0, 2),
            ("elemtype", 0, 7),
            ("global_dim", 0, 64),
            ("global_dim", 1, 32),
            ("global_dim", 2, 5),
            ("global_stride", 0, 256),
            ("global_stride", 1, 8192),
            ("box_dim", 0, 8),
            ("box_dim", 1, 4),
            ("box_dim", 2, 2),
            ("element_stride", 1, 2),
        ]);
        complete(&mut cube);
        let wanted = [0, 7, 0x3a0, 0x10, 0x200, 0, 0, 0, 63, 31, 4, 0, 0, 0x700_0008, 0x103, 0, 0x80, 0, 0x10];
        assert_eq!(cube, words(wanted));
        let mut images = map(&[
            ("global_address", 0, 0x7_0000_0000),
            ("rank", 0, 4),
            ("images", 0, 1),
            ("elemtype", 0, 6),
            ("global_dim", 0, 64),
            ("global_dim", 1, 8),
            ("global_dim", 2, 8),
            ("global_dim", 3, 8),
            ("global_dim", 4, 4),
            ("global_stride", 0, 128),
            ("global_stride", 1, 1024),
            ("global_stride", 2, 8192),
            ("global_stride", 3, 65536),
            ("box_dim", 0, 32),
            ("pixels_per_column", 0, 8),
            ("pixel_box_lower", 0, -1i64 as u64),
            ("pixel_box_lower", 1, -2i64 as u64),
            ("pixel_box_lower", 2, -3i64 as u64),
            ("pixel_box_upper", 0, 1),
            ("pixel_box_upper", 1, 2),
            ("pixel_box_upper", 2, 3),
        ]);
        complete(&mut images);
        let wanted =
            [0, 7, 0x341, 8, 0x40, 0x200, 0x1000, 0, 63, 7, 7, 7, 3, 0x1f00_0000, 0xc41_77df, 7, 0x200, 0, 0x10];
        assert_eq!(images, words(wanted));
        let read = TensorMap::read(0, &images).unwrap().image.unwrap();
        assert_eq!((read.lower, read.upper), (vec![-1, -2, -3], vec![1, 2, 3]));
    }

    #[test]
    fn units_at_an_edge_are_cut() {
        let plane = TensorMap::read(0, &map(&PLANE)).unwrap();
        let units = plane.units(0x80, &[6, 2], &Taken::Tile).unwrap();
        let row = plane.address + 2 * plane.strides[0];
        assert_eq!(units[0], Unit { shared: 0x80, global: row + 24, inside: (0, 16) });
        assert_eq!(units[1], Unit { shared: 0x90, global: row + 40, inside: (0, 0) });
        assert_eq!(units[2].inside, (0, 0));
        let before = plane.units(0x80, &[-2, 0], &Taken::Tile).unwrap();
        assert_eq!(before[0], Unit { shared: 0x80, global: plane.address - 8, inside: (8, 16) });
    }

    #[test]
    fn pixels_go_from_row_to_row_and_from_image_to_image() {
        let fields = [
            ("rank", 0, 3),
            ("elemtype", 0, 7),
            ("global_dim", 0, 4),
            ("global_dim", 1, 3),
            ("global_dim", 2, 2),
            ("global_dim", 3, 2),
            ("box_dim", 0, 4),
            ("images", 0, 1),
            ("pixels_per_column", 0, 8),
            ("pixel_box_lower", 0, -1i64 as u64),
            ("pixel_box_upper", 0, -1i64 as u64),
            ("pixel_box_upper", 1, -1i64 as u64),
        ];
        let images = TensorMap::read(0, &map(&fields)).unwrap();
        let places = images.pixels(&[0, 0, 0, 0], &[1, 1]).unwrap();
        let rows: Vec<[i64; 3]> = places.into_iter().map(|p| [p[0], p[1], p[2]]).collect();
        assert_eq!(rows[..4], [[1, 1, 0], [2, 1, 0], [0, 1, 1], [1, 1, 1]]);
        assert_eq!(rows[4..], [[2, 1, 1], [0, 1, 2], [1, 1, 2], [2, 1, 2]]);
        assert!(images.units(0x80, &[0, 0, 0, 0], &Taken::Tile).is_err());
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let mut odd = map(&PLANE);
        odd[8] |= 2;
        assert!(TensorMap::read(0, &odd).unwrap_err().contains("byte 0x8 "));
        assert!(TensorMap::read(0, &map(&[("interleave_layout", 0, 1)])).is_err());
        assert!(TensorMap::read(0, &map(&[("swizzle_96", 0, 1), ("box_dim", 0, 96)])).is_err());
        assert!(TensorMap::read(32, &map(&PLANE)).is_err());
    }

    #[test]
    fn swizzles_permute_units_in_their_rows() {
        let (swizzle, _) = Swizzle::of(3, 0).unwrap();
        assert_eq!([0x400, 0x480, 0x790].map(|at| swizzle.address(at)), [0x400, 0x490, 0x7e0]);
        let (swizzle, _) = Swizzle::of(1, 0).unwrap();
        assert_eq!([0x80, 0x90, 0x100].map(|at| swizzle.address(at)), [0x90, 0x80, 0x100]);
    }
}
