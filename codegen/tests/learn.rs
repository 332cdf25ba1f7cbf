//! Tests of learning encoding rows: tokens, differences and effects on recorded text, whole rows
//! from a fictitious instruction set and, if nvdisasm is installed, from words of sm_90.

use sassafras_codegen::learn::disasm::{self, Disassembler, NvDisasm};
use sassafras_codegen::learn::effect::{Effect, Slot, Way, effect, float_code};
use sassafras_codegen::learn::text::{Names, Token, diff, show, tokens};
use sassafras_codegen::learn::{self, known};
use sassafras_codegen::model::{Model, form_syntax};
use sassafras_codegen::rows::encoding::FormRow;
use sassafras_codegen::{report::Report, source::Sources};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn model() -> Model {
    let (mut sources, mut report) = (Sources::new(&root().join("tables")), Report::default());
    let model = Model::load(&mut sources, &mut report);
    assert!(report.is_empty(), "{}", report.render(&sources, true));
    model
}

fn names() -> Names {
    Names { urz: 63, specials: vec![("SR_TID.X".into(), 33)] }
}

#[test]
fn lines_become_tokens_and_lines_again() {
    for line in [
        "@!P0 FMUL.FTZ R0, -|R0.H0_H0|, 0.5",
        "LDG.E R0, desc[UR4][R2.64+-0x800000]",
        "@UP3 UIADD3 UR4, URZ, ~UR5, -0x1",
        "S2R R9, SR_TID.X",
        "FFMA R0, -R2, 9.3132257461547851562e-10, -c[0x0][0x210]",
        "FADD R0, R2, -INF",
    ] {
        let got = show(&tokens(line, &names())).replace("SR33", "SR_TID.X");
        assert_eq!(got.replace([' ', ','], ""), line.replace([' ', ','], ""));
    }
    let got = tokens("R2.64+-0x8", &names());
    let suffix = Token::Suffix("64".into());
    assert_eq!(got, [Token::Reg("R".into(), 2), suffix, Token::Punct('+'), Token::Int(-8, true)]);
    assert_eq!(tokens("URZ", &names()), [Token::Reg("UR".into(), 63)]);
}

/// The effect of changing one recorded text to another.
fn seen(base: &str, other: &str) -> Effect {
    let names = names();
    effect(&tokens(base, &names), Some(&tokens(other, &names)), &names)
}

fn number(at: usize, hidden: &str, class: &str, power: u32) -> Effect {
    Effect::Number(Slot { at, hidden: hidden.into() }, vec![Way { class: class.into(), power, fell: false }])
}

#[test]
fn recorded_flips_have_the_effects_they_show() {
    let ldg = "LDG.E R0, desc[UR4][R2.64]";
    let shown = |at| Slot { at, hidden: String::new() };
    assert_eq!(seen(ldg, ldg), Effect::Silent);
    assert_eq!(seen(ldg, "LDG.E R4, desc[UR4][R2.64]"), number(2, "", "R", 2));
    assert_eq!(seen(ldg, "LDG.E R0, desc[UR36][R2.64]"), number(6, "", "UR", 5));
    assert_eq!(seen(ldg, "LDG.E R0, desc[UR4][R2.64+0x100]"), number(11, "I", "I", 8));
    assert_eq!(seen(ldg, "LDG.E P5, R0, desc[UR4][R2.64]"), number(2, "P", "P", 1));
    assert_eq!(seen(ldg, "LDG.E R0, [R2.64+UR4]"), Effect::Form);
    assert_eq!(seen(ldg, "LDG.???0 R0, desc[UR4][R2.64]"), Effect::Illegal);
    assert_eq!(seen(ldg, "LDG.E.64 R0, desc[UR4][R2.64]"), Effect::Suffix);
    assert_eq!(seen(ldg, "LD.E R0, desc[UR4][R2.64]"), Effect::Form);
    assert_eq!(seen(ldg, "LDG.E R3, desc[UR4][R2.64]"), Effect::Form, "two bits at once are no flip of a register bit");
    let fma = "FFMA R0, R2, R4, RZ";
    assert_eq!(seen(fma, "FFMA R0, R2, R4, R127"), number(7, "", "R", 7));
    assert_eq!(seen(fma, "FFMA R0, R2, |R4|, RZ"), Effect::Mark(shown(5), '|'));
    assert_eq!(seen("FFMA R0, R2, |R4|, RZ", "FFMA R0, R2, -|R4|, RZ"), Effect::Mark(shown(6), '-'));
    assert_eq!(seen(fma, "FFMA R0, R2.reuse, R4, RZ"), Effect::Reuse(shown(3)));
    // An alias in the mnemonic does not hide the operand.
    assert_eq!(seen("IMAD.MOV R1, RZ, RZ, R2", "IMAD R1, R254, RZ, R2"), number(4, "", "R", 0));
    assert_eq!(seen("FADD R0, R2, 1", "FADD R0, R2, +QNAN"), Effect::Number(shown(5), vec![]));
}

#[test]
fn floats_have_the_codes_of_their_kinds() {
    assert_eq!(float_code("F", 1.5), Some(0x3fc0_0000));
    assert_eq!(float_code("D", -2.0), Some(0xc000_0000));
    assert_eq!(float_code("H", 1.0), Some(0x3c00));
    assert_eq!(float_code("H", 5.960464477539063e-08), Some(1));
    assert_eq!(float_code("H", 65504.0), Some(0x7bff));
    assert_eq!(float_code("H", 65536.0), None);
    assert_eq!(float_code("H", f64::NEG_INFINITY), Some(0xfc00));
    assert_eq!(float_code("G", 1.0), Some(0x3f80));
}

#[test]
fn a_difference_is_the_shortest_stretch() {
    let (a, b) = (tokens("LDG.E R0, desc[UR4]", &names()), tokens("LDG.E.64 R0, desc[UR4]", &names()));
    let change = diff(&a, &b).expect("they differ");
    assert_eq!((change.at, show(&change.removed), show(&change.added)), (2, String::new(), ".64".into()));
    assert_eq!(diff(&a, &a), None);
}

#[test]
fn listings_and_complaints_are_read_by_address() {
    let listing = "\t.headerflags\t@\"EF_CUDA_SM90\"\n        /*0000*/  @P0 LDG.E  R0, desc[UR4][R2.64] ;  /* 0x0000000402007981 */\n\
        \x20                 /* 0x000ea4000c1e1900 */\n        /*0020*/    NOP;   /* 0x0000000000007918 */\n";
    let want = [Some("@P0 LDG.E R0, desc[UR4][R2.64]".to_string()), None, Some("NOP".into())];
    assert_eq!(disasm::lines(listing, 3), want);
    let stderr = "nvdisasm error   : Unrecognized operation for functional unit 'uC' at address 0x00000030\n\
        nvdisasm error   : Illegal instruction found\n";
    assert_eq!(disasm::addresses(stderr).collect::<Vec<_>>(), [3]);
    let moved = disasm::at_zero("BRA P1, 0x1040".into(), "BRA P1, 0x1050".into(), 0x30);
    assert_eq!(moved.as_deref(), Some("BRA P1, 0x1010"));
}

#[test]
fn words_are_read_whole_or_in_halves() {
    let word = 0x000ea4000c1e1900_0000000402007981u128;
    assert_eq!(learn::words(&["0x000ea4000c1e19000000000402007981"]), Ok(vec![word]));
    assert_eq!(learn::words(&["0x402007981", "0x000ea4000c1e1900"]), Ok(vec![word]));
    let both = learn::words(&["0000000402007981", "000ea4000c1e1900", "000ea4000c1e19000000000402007981"]);
    assert_eq!(both, Ok(vec![word, word]));
    assert!(learn::words(&["402007981"]).is_err());
    assert!(learn::words(&["nonsense", "1"]).is_err());
    assert!(learn::words(&[]).is_err());
}

/// A fictitious instruction: `TOY{.SIZE}{.SAT} {PU, }RD, {-}RA, [UB{+OFF}], LUT, IMM`, with a
/// signed IMM.
struct Toy;

impl Toy {
    fn text(word: u128) -> Option<String> {
        let field = |lo: u32, len: u32| (word >> lo & ((1 << len) - 1)) as u32;
        let name = |file: &str, n: u32, zero: u32, z: &str| if n == zero { z.into() } else { format!("{file}{n}") };
        if field(0, 12) != 0xabc || field(91, 1) == 0 {
            return None;
        }
        let guard = match (field(15, 1), field(12, 3)) {
            (0, 7) => String::new(),
            (not, p) => format!("@{}{} ", if not == 1 { "!" } else { "" }, name("P", p, 7, "PT")),
        };
        let size = ["", ".S8", ".S16"].get(field(73, 2) as usize)?;
        let sat = if field(75, 1) == 1 { ".SAT" } else { "" };
        let pu = if field(81, 3) == 7 { String::new() } else { format!("P{}, ", field(81, 3)) };
        let minus = if field(72, 1) == 1 { "-" } else { "" };
        let (d, a) = (name("R", field(16, 8), 255, "RZ"), name("R", field(24, 8), 255, "RZ"));
        let reuse = if field(122, 1) == 1 { ".reuse" } else { "" };
        let offset = field(40, 8) * 4;
        let offset = if offset == 0 { String::new() } else { format!("+{offset:#x}") };
        let ub = name("UR", field(32, 6), 63, "URZ");
        let toy = if field(90, 1) == 1 { "FROB" } else { "TOY" };
        let (lut, imm) = (field(48, 8), field(56, 8) as i32);
        let imm = if imm < 128 { format!("{imm:#x}") } else { format!("-{:#x}", 256 - imm) };
        Some(format!("{guard}{toy}{size}{sat} {pu}{d}, {minus}{a}{reuse}, [{ub}{offset}], {lut:#x}, {imm}"))
    }
}

impl Disassembler for Toy {
    fn texts(&mut self, words: &[u128]) -> Result<Vec<Option<String>>, String> {
        Ok(words.iter().map(|w| Toy::text(*w)).collect())
    }

    fn version(&self) -> String {
        "a made-up disassembler".into()
    }
}

/// R3, R5, [UR4], 0x7, 0x7, PT at 81..83, bit 91 set, bits 100 and 103 set without effect.
const TOY: u128 =
    0xabc | 7 << 12 | 3 << 16 | 5 << 24 | 4 << 32 | 7 << 48 | 7 << 56 | 7 << 81 | 1 << 91 | 1 << 100 | 1 << 103;

#[test]
fn a_made_up_instruction_is_learned_whole() {
    let model = model();
    let target = known::target(&model, "90").expect("a target");
    let (proposal, _) = learn::learn(&model, &target, &[TOY], &mut Toy).expect("it is an instruction");
    let want = "(op: \"TOY\", on: \"sm90\", code: 0xabc, fix: \"90..91=2\", mods: \"toy_73@73..74 sat@75\", \
        args: \"p0:P@81?PT r1:R@16 r2:R@24-72^122 [u3:U@32 i4:I@40..47*4?0] i5:I@48..55 s6:S@56..63\", \
        must: \"64..71=0 76..80=0 84..89=0 92..104=0x900\", src: \"learned by bit flips through a made-up disassembler\"),";
    assert_eq!(proposal.row, want);
    let set = "(kind: \"toy_73\", set: \"toy_73\", values: \"0=- 1=S8 2=S16\", src: \"all codes through a made-up disassembler\"),";
    assert_eq!(proposal.sets, [set]);
    assert_eq!(
        proposal.unnamed,
        ["bit 90: `TOY R3, R5, [UR4], 0x7, 0x7` -> `FROB R3, R5, [UR4], 0x7, 0x7`: another form or opcode"]
    );
    assert_eq!(accounted(&proposal.row), Ok(()));
}

#[test]
fn a_bit_in_which_words_differ_is_not_a_must_bit() {
    let model = model();
    let target = known::target(&model, "90").expect("a target");
    let words = [TOY, TOY ^ 1 << 100 ^ 1 << 17 ^ 1 << 42];
    let (proposal, _) = learn::learn(&model, &target, &words, &mut Toy).expect("they are instructions");
    assert_eq!(proposal.open, 1 << 100);
    let told = "bits 100: the given words differ in them, and no field has them".to_string();
    assert!(proposal.unnamed.contains(&told), "{:?}", proposal.unnamed);
    assert_eq!(accounted(&proposal.row), Err("bits 100 are in no column".into()));
    let other = learn::learn(&model, &target, &[TOY, TOY ^ 1 << 90], &mut Toy).map(|_| ());
    assert_eq!(
        other,
        Err("`TOY R3, R5, [UR4], 0x7, 0x7` and `FROB R3, R5, [UR4], 0x7, 0x7` are not of one form".into())
    );
    let illegal = learn::learn(&model, &target, &[TOY ^ 1], &mut Toy).map(|_| ());
    assert!(illegal.is_err_and(|e| e.ends_with("is not an instruction")));
}

/// Checks that the columns of a row claim each of the 128 bits once. It parses the row as the
/// generator does.
fn accounted(row: &str) -> Result<(), String> {
    let row: FormRow = ron::from_str(row.trim_end_matches(',')).map_err(|e| e.to_string())?;
    let mut taken = u128::MAX << 105 | if row.guard == "none" { 0xfff } else { 0xffff };
    let mut claim = |mask: u128, who: &str| match taken & mask {
        0 => {
            taken |= mask;
            Ok(())
        }
        twice => Err(format!("{who} takes {twice:#x} twice")),
    };
    let bits = |text: &str| form_syntax::bits(text).map(|b| b.mask()).ok_or_else(|| format!("`{text}` are no bits"));
    for word in row.fix.split_whitespace().chain(row.must.split_whitespace()) {
        claim(bits(word.split_once('=').map_or(word, |w| w.0))?, word)?;
    }
    let args = form_syntax::args(&row.args)?;
    let suffixes = args.iter().flat_map(|a| a.suffixes.iter().map(String::as_str));
    for word in row.mods.split_whitespace().chain(suffixes) {
        claim(word.split_once('@').map_or(Ok(0), |w| bits(w.1))?, word)?;
    }
    for arg in args {
        claim(arg.bits.as_ref().map_or(0, |b| b.mask()), &arg.role)?;
        for bit in [arg.neg, arg.abs, arg.complement, arg.not].into_iter().flatten() {
            claim(1 << bit, &arg.role)?;
        }
    }
    if taken == u128::MAX {
        Ok(())
    } else {
        Err(format!("bits {} are in no column", sassafras_codegen::check::bits::ranges(!taken)))
    }
}

#[test]
fn rows_learned_from_nvdisasm_agree_with_the_tables() {
    let tool = root().join("target/vendor/nvdisasm");
    if !tool.exists() {
        println!("skipped: target/vendor/nvdisasm is missing");
        return;
    }
    let model = model();
    let target = known::target(&model, "90").expect("a target");
    let mut nvdisasm = NvDisasm::new(&tool, "90").expect("nvdisasm runs");
    for (word, operands, sets) in [
        (0x000fca00078e0204_0000000605027210u128, 6, &[][..]),
        (0x000ea4000c1e1900_0000000402007981, 4, &["evict", "ltc", "size", "mem"]),
        (0x000fca0000000003_0000000402007223, 4, &["fmz", "rnd", "sat"]),
    ] {
        let (proposal, _) = learn::learn(&model, &target, &[word], &mut nvdisasm).expect("an instruction");
        assert_eq!(accounted(&proposal.row), Ok(()), "{}", proposal.row);
        let row: FormRow = ron::from_str(proposal.row.trim_end_matches(',')).expect("the row parses");
        let ours = form_syntax::args(&row.args).expect("its operands parse");
        let forms = known::decoders(&model, &target, word);
        assert_eq!(forms.len(), 1, "{}", proposal.row);
        let mut registers = 0;
        for theirs in forms[0].args.iter().map(|a| &a.arg).filter(|a| matches!(a.kind.as_str(), "R" | "RN" | "U" | "P"))
        {
            let found = ours.iter().find(|a| a.role == theirs.role).expect("the role is there");
            let signs = |a: &form_syntax::GroupedArg| (a.bits.clone(), a.neg, a.abs, a.complement, a.not, a.reuse);
            assert_eq!(signs(found), signs(theirs), "{}: {}", theirs.role, proposal.row);
            registers += 1;
        }
        assert_eq!(registers, operands, "{}", proposal.row);
        for set in sets {
            assert!(row.mods.contains(&format!("{set}@")), "{set}: {}", row.mods);
        }
        assert_eq!(proposal.sets, Vec::<String>::new());
    }
}
