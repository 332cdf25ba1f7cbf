//! `mma.m8n8k4` on f16, and `wmma.mma` on f16 whose accumulator and result differ in type.
//!
//! `mma.m8n8k4` computes four small products, one per quad pair (lanes n..n+3 and n+16..n+19).
//! Shuffles bring each lane the row of A and the columns of B that its results need; FFMA computes
//! them, because later hardware has no instruction for this shape. Sums are computed in f32 and
//! rounded once.
//!
//! For mixed types, the mma is computed in f32 between conversions: the fragments of both types
//! hold the same elements in the same order.

use crate::arrays::Each;
use crate::lower::builder::{Builder, Lowered, Refusal};
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast;
use crate::tables::ptx::{Layout, LayoutB, Modifiers, ScalarType};
use crate::tables::{Op, Role};

/// Distance between the two halves of a quad pair, in lanes.
const UPPER: u32 = 16;

/// Position of a lane in its quad pair.
struct Lane {
    /// First lane of the quad pair.
    base: Operand,
    /// Lane number and 1, 2, 16.
    bit0: Operand,
    bit1: Operand,
    upper: Operand,
}

impl Builder<'_> {
    /// `mma.m8n8k4` on f16.
    pub(crate) fn quarter_product(&mut self, inst: &ast::Instruction) -> Lowered {
        let wide = inst.types[0] == ScalarType::F32;
        let mut parts = Vec::new();
        for operand in &inst.operands[1..4] {
            let mut words = Vec::new();
            for word in self.fragment_words(operand, ScalarType::B32)? {
                words.push(self.in_reg(word));
            }
            parts.push(words);
        }
        let [a, b] = [0, 1].each(|i| parts[i].get(..2).map(|w| [w[0], w[1]]));
        let (a, b) = (a.ok_or(Refusal::NotBuilt)?, b.ok_or(Refusal::NotBuilt)?);
        self.all_lanes();
        let lane = self.lane_in_quarter();
        let mut sums = match (wide, inst.types[3], parts[2].as_slice()) {
            (true, ScalarType::F16, [w, x, y, z]) => self.quarter_sum([[*w, *x], [*y, *z]], &lane),
            _ => self.as_singles(&parts[2], inst.types[3]),
        };
        let rows = self.quarter_rows(a, inst.mods.layout == Some(Layout::Row), &lane, wide);
        let columns = self.quarter_columns(b, inst.mods.layout_b == Some(LayoutB::Row), &lane, wide);
        for (element, sum) in sums.iter_mut().enumerate() {
            // 32-bit results are of two rows and four columns, 16-bit results of one row and all
            // columns.
            let (row, column) = if wide { (element / 2 % 2, element / 4 * 2 + element % 2) } else { (0, element) };
            for k in 0..4 {
                let next = self.temp();
                let args = [(Role::D, next), (Role::A, rows[row][k]), (Role::B, columns[column][k]), (Role::C, *sum)];
                self.put(Op::FFMA, &[], &args);
                *sum = next;
            }
        }
        let words = self.rounded_to(sums, inst.types[0])?;
        self.scatter(&inst.operands[0], ScalarType::B32, &words)
    }

    /// The elements of a fragment as f32.
    pub(crate) fn as_singles(&mut self, words: &[Operand], ty: ScalarType) -> Vec<Operand> {
        if ty == ScalarType::F32 {
            return words.to_vec();
        }
        words.iter().flat_map(|word| [0, 1].each(|half| self.half_as_single(*word, half))).collect()
    }

    fn half_as_single(&mut self, word: Operand, half: usize) -> Operand {
        let mut low = word;
        if half == 1 {
            let places = self.imm(16);
            low = self.temp();
            self.shf(&SHF_R_U32_HI, low, Operand::zero(), places, word);
        }
        self.widened_half(low, ScalarType::F16, false)
    }

    /// Rounds f32 elements to the words of a fragment.
    pub(crate) fn rounded_to(&mut self, elements: Vec<Operand>, ty: ScalarType) -> Lowered<Vec<Operand>> {
        if ty == ScalarType::F32 {
            return Ok(elements);
        }
        let mut words = Vec::new();
        for pair in elements.chunks(2) {
            let halves = [self.temp(), self.temp()];
            for (half, element) in halves.iter().zip(pair) {
                self.narrow(*half, *element, ScalarType::F16, ScalarType::F32, &Modifiers::default())?;
            }
            let word = self.temp();
            self.join_halves(word, halves[0], halves[1]);
            words.push(word);
        }
        Ok(words)
    }

    fn lane_in_quarter(&mut self) -> Lane {
        let (number, special) = (self.temp(), self.special_number("SR_LANEID"));
        self.put(Op::S2R, &[], &[(Role::D, number), (Role::S, special)]);
        let [base, bit0, bit1, upper] = [12, 1, 2, UPPER].each(|mask| {
            let (d, mask) = (self.temp(), self.imm(mask));
            self.and(d, number, mask);
            d
        });
        Lane { base, bit0, bit1, upper }
    }

    /// Reads two words from lane `base + part + number`.
    fn words_of_lane(&mut self, words: [Operand; 2], base: Operand, part: Operand, number: u32) -> [Operand; 2] {
        let (lane, number, clamp) = (self.temp(), self.imm(number), self.literal(31));
        self.put(Op::IADD3, &[], &[(Role::D, lane), (Role::A, base), (Role::B, number), (Role::C, part)]);
        words.each(|word| {
            let d = self.temp();
            self.put(Op::SHFL, &[SHFL_IDX], &[(Role::D, d), (Role::A, word), (Role::B, lane), (Role::C, clamp)]);
            d
        })
    }

    /// The half of a word that `bit` selects, as f32.
    fn half_by_bit(&mut self, word: Operand, bit: Operand) -> Operand {
        let ([amount, shifted], places) = ([self.temp(), self.temp()], self.imm(4));
        self.shf(&SHF_L, amount, bit, places, Operand::zero());
        self.shf(&SHF_R_U32_HI, shifted, Operand::zero(), amount, word);
        self.widened_half(shifted, ScalarType::F16, false)
    }

    /// The word that `bit` (2 or 0) selects.
    fn word_by_bit(&mut self, words: [Operand; 2], bit: Operand) -> Operand {
        let (p, d) = (self.temp_pred(), self.temp());
        self.isetp(p, &[NE, AND, U32], bit, Operand::zero());
        self.select(d, words[1], words[0], p);
        d
    }

    /// All four elements of two words.
    fn four_singles(&mut self, words: [Operand; 2]) -> [Operand; 4] {
        [0, 1, 2, 3].each(|k| self.half_as_single(words[k / 2], k % 2))
    }

    /// The rows of A that the lane's results need, each along k.
    fn quarter_rows(&mut self, a: [Operand; 2], by_row: bool, lane: &Lane, wide: bool) -> Vec<[Operand; 4]> {
        if by_row {
            if !wide {
                return vec![self.four_singles(a)];
            }
            let first = self.temp();
            self.add(first, lane.base, lane.upper);
            return [0, 2]
                .each(|row| self.words_of_lane(a, first, lane.bit0, row))
                .each(|w| self.four_singles(w))
                .to_vec();
        }
        // Lane k of the half has element k of its four rows.
        let held = [0, 1, 2, 3].each(|k| self.words_of_lane(a, lane.base, lane.upper, k));
        if wide {
            return [0, 1].each(|row| held.each(|words| self.half_by_bit(words[row], lane.bit0))).to_vec();
        }
        let row = held.each(|words| {
            let word = self.word_by_bit(words, lane.bit1);
            self.half_by_bit(word, lane.bit0)
        });
        vec![row]
    }

    /// Converts a 16-bit accumulator, distributed by rows, to the layout of 32-bit results.
    fn quarter_sum(&mut self, c: [[Operand; 2]; 2], lane: &Lane) -> Vec<Operand> {
        let first = self.temp();
        self.add(first, lane.base, lane.upper);
        let mut sums = Vec::new();
        for words in c {
            for row in [0, 2] {
                let held = self.words_of_lane(words, first, lane.bit0, row);
                let word = self.word_by_bit(held, lane.bit1);
                sums.extend([0, 1].each(|half| self.half_as_single(word, half)));
            }
        }
        sums
    }

    /// The columns of B that the lane's results need, each along k.
    fn quarter_columns(&mut self, b: [Operand; 2], by_row: bool, lane: &Lane, wide: bool) -> Vec<[Operand; 4]> {
        let mut columns = Vec::new();
        for half in [0, UPPER] {
            if !by_row {
                let (part, count) = if wide { (lane.bit1, 2) } else { (Operand::zero(), 4) };
                for column in 0..count {
                    let words = self.words_of_lane(b, lane.base, part, half + column);
                    columns.push(self.four_singles(words));
                }
                continue;
            }
            let held = [0, 1, 2, 3].each(|k| self.words_of_lane(b, lane.base, Operand::zero(), half + k));
            if wide {
                let words = held.each(|words| self.word_by_bit(words, lane.bit1));
                columns.extend([0, 1].each(|column| words.each(|word| self.half_as_single(word, column))));
            } else {
                let of = |s: &mut Self, n: usize| held.each(|words| s.half_as_single(words[n / 2], n % 2));
                columns.extend([0, 1, 2, 3].each(|column| of(self, column)));
            }
        }
        columns
    }
}
