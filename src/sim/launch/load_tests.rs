//! Tests of the loader: the result for valid descriptions, and the exact text of each error.

use super::*;
use crate::sim::launch::{ArgValue, Expected};

fn one(args: &str) -> Result<LaunchFile, LoadError> {
    let text = format!(
        "(module: \"k.ptx\", launches: [\n(kernel: \"k\", grid: (1, 1, 1), block: (32, 1, 1), args: [\n{args}\n])])"
    );
    LaunchFile::parse("k.ron", &text)
}

fn buffer(args: &str) -> (Vec<u8>, Option<Vec<Expected>>) {
    match one(args).unwrap().launches.remove(0).args.remove(0) {
        Arg::Buffer { bytes, expect, .. } => (bytes, expect),
        other => panic!("{other:?}"),
    }
}

fn error(args: &str) -> String {
    one(args).unwrap_err().to_string()
}

#[test]
fn a_whole_description() {
    let text = r#"
        // a comment
        (
            module: "k.ptx",
            launches: [
                (
                    kernel: "k", grid: (2, 3, 4), block: (8, 2, 1), smem: 64, tolerance: ulps(2),
                    args: [ u32(5), f32(2.5), in(type: s16, data: [1, -1]), out(type: u8, expect: [0x7f, 2 /* two */]) ],
                ),
            ],
        )"#;
    let file = LaunchFile::parse("k.ron", text).unwrap();
    assert_eq!(file.module, Path::new("k.ptx"));
    let launch = &file.launches[0];
    assert_eq!((launch.kernel.as_str(), launch.grid, launch.block, launch.smem), ("k", [2, 3, 4], [8, 2, 1], 64));
    assert_eq!(launch.tolerance, Tolerance::Ulps(2));
    let values = [
        ArgValue::Scalar { bytes: vec![5, 0, 0, 0] },
        ArgValue::Scalar { bytes: 2.5f32.to_le_bytes().to_vec() },
        ArgValue::Buffer { bytes: vec![1, 0, 255, 255], writable: false },
        ArgValue::Buffer { bytes: vec![UNWRITTEN; 2], writable: true },
    ];
    assert_eq!(launch.arg_values(), values);
    let Arg::Buffer { expect, .. } = &launch.args[3] else { panic!() };
    assert_eq!(expect.as_deref(), Some(&[Expected::Bits(0x7f), Expected::Bits(2)][..]));
}

#[test]
fn generators_and_nans() {
    assert_eq!(buffer("in(type: u8, data: iota(3, 5, -1))").0, [5, 4, 3]);
    assert_eq!(buffer("in(type: u16, data: fill(2, 258))").0, [2, 1, 2, 1]);
    assert_eq!(buffer("in(type: u8, data: lcg(4, 1, 0x0))").0, [0; 4]);
    assert_eq!(buffer("inout(type: u8, data: fill(2, 0), expect: fill(2, 9))").1, Some(vec![Expected::Bits(9); 2]));
    assert_eq!(
        buffer("out(type: f32, expect: [nan, 0x7fc00000, -0.0])").1,
        Some(vec![Expected::Nan, Expected::Bits(0x7fc0_0000), Expected::Bits(0x8000_0000)])
    );
}

#[test]
fn every_error_has_its_place() {
    assert_eq!(error("u32(-5)"), "k.ron:3:5: `-5` does not fit into u32");
    assert_eq!(error("u32(5), f32(x)"), "k.ron:3:13: `x` is not a number of type f32");
    assert_eq!(error("u32"), "k.ron:3:4: expected u32(NUMBER)");
    let kinds = "expected a scalar (u8 to f64), struct, in, out, inout, memory or at";
    assert_eq!(error("i32(5)"), format!("k.ron:3:1: `i32` is not a kind of argument; {kinds}"));
    assert_eq!(error("in(type: u8, data: [1,\n  2, 300])"), "k.ron:4:6: `300` does not fit into u8");
    assert_eq!(error("in(type: u8, data: fill(2, 1.5))"), "k.ron:3:28: `1.5` is not a number of type u8");
    assert_eq!(error("in(type: u8, data: iota(2, 1.5, 1))"), "k.ron:3:20: `1.5` is not a number of type u8");
    assert_eq!(
        error("in(type: u8, data: fill(99999999999, 1))"),
        "k.ron:3:20: 99999999999 elements are more than 268435456"
    );
    assert_eq!(
        error("inout(type: u8, data: fill(3, 0), expect: [1, 2])"),
        "k.ron:3:43: 2 expected numbers for a buffer of 3"
    );
    assert_eq!(error("out(type: u32, expect: [nan])"), "k.ron:3:25: `nan` is not a number of type u32");
}

#[test]
fn longer_lists_and_the_interpreter() {
    assert_eq!(buffer("in(type: u8, data: concat([fill(2, 1), [7], concat([])]))").0, [1, 1, 7]);
    assert_eq!(buffer("in(type: u16, data: random(3, 1, 5, 5))").0, [5, 0, 5, 0, 5, 0]);
    assert_eq!(buffer("in(type: bf16, data: edges(5, 1))").0.len(), 10);
    let (bytes, expect) = buffer("out(type: f64, tolerance: ulps(1), expect: interpreter(2))");
    assert_eq!((bytes, expect), (vec![UNWRITTEN; 16], Some(vec![Expected::Interpreter; 2])));
    assert_eq!(
        buffer("inout(type: u8, data: fill(3, 0), expect: interpreter)").1,
        Some(vec![Expected::Interpreter; 3])
    );
    assert_eq!(
        error("out(type: u8, expect: interpreter)"),
        "k.ron:3:23: how many numbers? expected interpreter(COUNT)"
    );
    assert_eq!(error("in(type: u8, data: random(2, 1, 3, 2))"), "k.ron:3:20: 3 to 2 is no range of u8");
    assert_eq!(error("in(type: u8, data: concat([fill(1, 2), [256]]))"), "k.ron:3:41: `256` does not fit into u8");
}

#[test]
fn structures_and_addresses() {
    let args = "in(type: u8, data: [1, 2]), at(0, 1), struct([s16(-1), pad(2), array(type: u8, data: iota(3, 1, 1))])";
    let values = one(args).unwrap().launches[0].arg_values();
    assert_eq!(values[1], ArgValue::Within { arg: 0, offset: 1 });
    assert_eq!(values[2], ArgValue::Scalar { bytes: vec![255, 255, 0, 0, 1, 2, 3] });
    assert_eq!(error("u8(1), at(0, 1)"), "k.ron:3:8: argument 0 is no buffer before this one");
    let args = "memory(inout(type: u8, data: [1], expect: [2])), struct([u16(3), pad(6), at(0, 1), at(0, 0)])";
    let structure = ArgValue::Struct {
        bytes: [vec![3], vec![0; 23]].concat(),
        addresses: vec![Within { at: 8, arg: 0, offset: 1 }, Within { at: 16, arg: 0, offset: 0 }],
    };
    let values = [ArgValue::Memory { bytes: vec![1], writable: true }, structure];
    assert_eq!(one(args).unwrap().launches[0].arg_values(), values);
    let wanted = "expected memory(in(…)), memory(out(…)) or memory(inout(…))";
    assert_eq!(error("memory(u8(1))"), format!("k.ron:3:1: {wanted}"));
    assert_eq!(error("u8(1), struct([at(0, 1)])"), "k.ron:3:16: argument 0 is no buffer before this one");
    assert_eq!(error("struct([u8(256)])"), "k.ron:3:12: `256` does not fit into u8");
    assert_eq!(error("struct([pad(99999)])"), "k.ron:3:9: 99999 bytes of padding are more than 32768");
    assert!(error("struct([in(type: u8, data: [])])").starts_with("k.ron:3:9: "));
}

#[test]
fn targets_symbols_and_tolerances() {
    let text = r#"(module: "k.ptx", launches: [(kernel: "k", grid: (1, 1, 1), block: (1, 1, 1), targets: ["sm_90"],
        symbols: [("c", array(type: u16, data: [1, 2]))], tolerance: close(0.5, 1.0),
        args: [out(type: f32, tolerance: rel(0.25), expect: [1])])])"#;
    let launch = LaunchFile::parse("k.ron", text).unwrap().launches.remove(0);
    assert_eq!(launch.targets, ["sm_90"]);
    assert_eq!(launch.symbols, [Symbol { name: "c".into(), bytes: vec![1, 0, 2, 0] }]);
    assert_eq!(launch.tolerance, Tolerance::Close(0.5, 1.0));
    assert!(matches!(launch.args[0], Arg::Buffer { tolerance: Some(Tolerance::Rel(0.25)), .. }));
}

#[test]
fn errors_of_the_notation() {
    let unknown = error("in(type: u8, values: [1])");
    assert!(unknown.starts_with("k.ron:3:") && unknown.contains("`values`"), "{unknown}");
    let missing = error("out(type: u8)");
    assert!(missing.starts_with("k.ron:3:") && missing.contains("`expect`"), "{missing}");
    let ty = error("in(type: i8, data: [1])");
    assert!(ty.starts_with("k.ron:3:") && ty.contains("`i8`"), "{ty}");
    let syntax = error("in(type: u8, data: [1)");
    assert!(syntax.starts_with("k.ron:3:"), "{syntax}");
}

#[test]
fn sizes() {
    let text = |grid: &str, block: &str| {
        format!("(module: \"k.ptx\", launches: [\n(kernel: \"k\",\n grid: {grid},\n block: {block}, args: [])])")
    };
    let error = |grid, block| LaunchFile::parse("k.ron", &text(grid, block)).unwrap_err().to_string();
    assert_eq!(error("(0, 1, 1)", "(1, 1, 1)"), "k.ron:3:8: a size must not be 0");
    assert_eq!(
        error("(1, 65536, 1)", "(1, 1, 1)"),
        "k.ron:3:8: a size is at most 2147483647 in x and 65535 in y and z"
    );
    assert_eq!(error("(1, 1, 1)", "(64, 16, 2)"), "k.ron:4:9: 2048 threads in a block; at most 1024");
    assert!(error("(1, 1)", "(1, 1, 1)").starts_with("k.ron:3:"));
}

#[test]
fn a_missing_file_is_an_error() {
    let error = LaunchFile::load(Path::new("no/such.ron")).unwrap_err();
    assert!(error.to_string().starts_with("no/such.ron: cannot read: "), "{error}");
}

/// Loads the descriptions under tests/cases/NAME.
fn descriptions(name: &str) -> Vec<LaunchFile> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.extension().is_some_and(|e| e == "ron"));
    paths.map(|path| LaunchFile::load(&path).unwrap_or_else(|error| panic!("{error}"))).collect()
}

/// Every description of the repository loads and names an existing module, and its expectations can
/// fail.
#[test]
fn all_descriptions_load() {
    let files = descriptions("exec");
    assert!(files.len() >= 46, "{} descriptions", files.len());
    for file in files {
        let module = fs::read_to_string(&file.module).unwrap();
        for launch in &file.launches {
            assert!(module.contains(&format!(".entry {}(", launch.kernel)), "{}", launch.kernel);
            let unchanged = launch.check(&launch.arg_values());
            assert!(unchanged.is_err(), "{}: {} passes without running", file.module.display(), launch.kernel);
        }
    }
}

/// The reference scripts have generators of their own. Where an output is a permutation of inputs,
/// both generators must agree.
#[test]
fn generators_agree_with_the_references() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/exec");
    let arg = |name: &str, index: usize| match &LaunchFile::load(&folder.join(name)).unwrap().launches[0].args[index] {
        Arg::Buffer { ty, bytes, expect, .. } => {
            let data: Vec<u64> = bytes.chunks_exact(ty.size()).map(|b| ty.get(b)).collect();
            let expect = expect.iter().flatten();
            (data, expect.map(|e| if let Expected::Bits(bits) = e { *bits } else { 0 }).collect::<Vec<_>>())
        }
        other => panic!("{other:?}"),
    };
    let (mut keys, sorted) = arg("bitonic.ron", 0);
    keys.sort();
    assert_eq!(keys, sorted);

    let (y, after) = arg("saxpy.ron", 3);
    assert_eq!(y[100..], after[100..]);

    let (x, y, z) = (arg("vecadd.ron", 0).0, arg("vecadd.ron", 1).0, arg("vecadd.ron", 2).1);
    assert!((0..150).all(|i| (x[i] + y[i]) & 0xffff_ffff == z[i]));

    let (pairs, sums) = (arg("vector_access.ron", 1).0, arg("vector_access.ron", 5).1);
    assert!(pairs.chunks_exact(2).zip(sums.chunks_exact(4)).all(|(p, s)| p[0] == s[1] && p[1] == s[0]));
}
