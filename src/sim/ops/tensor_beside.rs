//! What a product of tensor memory takes from there beside its factors and sums: scales, and the
//! numbers of the elements that a sparse first factor has.
//!
//! The ISA (PTX 9.1, 9.7.16.10.7 and 9.7.16.10.8) says in words how many scales a line has, which
//! bytes the identifiers in the descriptor of the instruction name, that all quarters of the lanes
//! hold the same ones, that a line of a factor is cut into as many chunks of the same size, also
//! where a sparse product is twice as deep, and what the numbers mean: of every four elements two,
//! of every eight of 4 bits two pairs, of every two of 32 bits one. So a scale is over 32 elements,
//! 64 of a sparse product, or 16 and 32 of them; `SFVecSize` of CUTLASS has the same
//! (`mma_traits_sm100.hpp`). In which lanes and columns scales and numbers are is a figure of the
//! ISA; here it is as CUTLASS has it (`tmem_sf_frg` and `tmem_e_frg` in
//! `mma_traits_sm100_frag.hpp`), and the number of the first element in the lower two bits as its
//! compressor writes it (`sm90_sparse_gemm_compressor.hpp`).
//!
//! That a sparse factor with scales may also lie in tensor memory is the syntax of the ISA; that
//! its stored elements lie there as those of a dense one is inferred, for CUTLASS has no such
//! product. What selects numbers is reserved beside scales, and "assumed to be 0".

use super::format::{F16, F64, Round};
use super::narrow::{Tiny, from_tiny};
use super::tensor_memory::{ROWS, Tensor};

/// Bits of an address of scales; the others say what the descriptor says as well.
const SCALES_AT: u32 = 0x3fff_ffff;
/// Lanes that hold scales, as often as there are quarters.
const LANES: usize = 32;
/// Elements under one scale, of a dense product, where no more scales are possible.
pub const MOST: usize = 32;

/// How factors are scaled: a byte for so many elements of a line.
pub struct Scales {
    each: usize,
    /// Whether a scale is a power of two, and not a float of 8 bits.
    power: bool,
    /// The byte of a cell that the first scale of each factor is.
    first: [u32; 2],
}

impl Scales {
    /// The scales of a product by its descriptor: one for `each` elements, if it were dense, and
    /// whether there are several in a line.
    ///
    /// # Errors
    ///
    /// Types and places of scales that such a product does not have.
    pub fn of(of: u32, each: usize, several: bool, sparse: bool) -> Result<Scales, String> {
        let power = of >> 23 & 1 == 1;
        let first = [of >> 29 & 3, of >> 4 & 3];
        let fits = |id: &u32| !several || *id == 0 || *id == 2 && each == MOST;
        if !power && each == MOST || !first.iter().all(fits) {
            return Err(format!("the descriptor {of:#010x} has scales that a product of this kind has not"));
        }
        Ok(Scales { each: if sparse { 2 * each } else { each }, power, first })
    }

    /// The scale of an element of a factor by the address of the factor's scales.
    ///
    /// # Errors
    ///
    /// Lanes or columns that are not there, and quarters that hold different scales.
    pub fn get(&self, tensor: &mut Tensor, at: u32, which: usize, (line, k): (usize, usize)) -> Result<f64, String> {
        let at = at & SCALES_AT;
        let (row, column) = ((at >> 16) + (line % LANES) as u32, (at & 0xffff) + (line / LANES) as u32);
        let byte = self.first[which] + (k / self.each) as u32;
        let mut bits = None;
        for quarter in 0..ROWS / LANES as u32 {
            let own = *tensor.cell(row + quarter * LANES as u32, column)? >> (8 * byte) & 0xff;
            if *bits.get_or_insert(own) != own {
                return Err(format!("the scales in column {column} differ between the quarters of tensor memory"));
            }
        }
        let bits = bits.unwrap_or(0);
        Ok(match (self.power, bits) {
            (true, 0xff) => f64::NAN,
            (true, power) => 2f64.powi(power as i32 - 127),
            (false, bits) => {
                let half = from_tiny(Tiny::E4m3, (bits & 0x7f) as u8, false);
                f64::from_bits(F16.convert(half, F64, Round::Nearest))
            }
        })
    }
}

/// The place in the row of an element that is stored of a sparse first factor, whose elements have
/// so many bits, by the address of the numbers. Four bits have two of them, and eight of these lie
/// in a cell.
///
/// # Errors
///
/// Lanes or columns that are not there, and numbers that the ISA does not name.
pub fn spread(tensor: &mut Tensor, at: u32, bits: usize, (row, stored): (usize, usize)) -> Result<usize, String> {
    // Elements of 4 bits go in pairs.
    let pair = if bits == 4 { 2 } else { 1 };
    let (unit, within) = (stored / pair, stored % pair);
    let (group, slot) = if bits == 32 { (unit, 0) } else { (unit / 2, unit % 2) };
    // Wider elements: eight rows have 16 bits of a lane, and the eight rows below the others.
    let (lane, column, four) = match bits {
        4 | 8 => (row, group / 8, group % 8),
        _ => (row % 8 + 8 * (group / 4) + 16 * (row / 16), 0, group % 4 + 4 * (row / 8 % 2)),
    };
    let cell = *tensor.cell((at >> 16) + lane as u32, (at & 0xffff) + column as u32)?;
    let numbers = cell >> (4 * four) & 0xf;
    match (bits, numbers) {
        (32, 0b0100) => Ok(2 * group),
        (32, 0b1110) => Ok(2 * group + 1),
        // The last one is the only one that falls which the ISA names.
        (4 | 8 | 16, numbers) if numbers & 3 < numbers >> 2 || numbers == 0b0110 => {
            Ok(pair * (4 * group + (numbers >> (2 * slot) & 3) as usize) + within)
        }
        _ => Err(format!("the elements {numbers:#06b} of row {row} of a sparse factor")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_nibbles_are_spread() {
        let mut tensor = Tensor::default();
        tensor.units = 1;
        // Pairs 1 and 3 of the ninth group of eight, whose numbers begin the second column.
        *tensor.cell(5, 4).expect("there") = 0b1101;
        let mut place = |stored| spread(&mut tensor, 3, 4, (5, stored));
        assert_eq!((32..36).map(&mut place).collect::<Result<Vec<_>, _>>(), Ok(vec![66, 67, 70, 71]));
        assert!(place(36).is_err());
    }

    #[test]
    fn a_sparse_product_has_scales_of_twice_as_many() {
        let mut tensor = Tensor::default();
        tensor.units = 1;
        for quarter in 0..4 {
            *tensor.cell(32 * quarter + 1, 2).expect("there") = 0x8180_7f7e;
        }
        for (sparse, each) in [(false, 16), (true, 32)] {
            let scales = Scales::of(1 << 23, 16, true, sparse).expect("scales");
            let all: Vec<_> = (0..4).map(|i| scales.get(&mut tensor, 1, 0, (33, each * i + each - 1))).collect();
            assert_eq!(all, [Ok(0.5), Ok(1.0), Ok(2.0), Ok(4.0)]);
        }
        assert!(Scales::of(1 << 23 | 2 << 29, 16, true, true).is_err());
    }
}
