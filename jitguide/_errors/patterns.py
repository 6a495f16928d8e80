"""How errors, tracebacks and logs look in a text, and what tells JAX's from others; the browser uses the same."""

import re

import jax

RAISED = re.compile(  # not what a message quotes after "The error was:"
    r"(?<!was:\n)^(?:E\s+|FAILED \S+ - |.* \| )*((?:[\w.]*\.)?(?!nccl[A-Z])\w+(?:Error|Exception|Warning|Operation)|Exception)(?:: |$)",
    re.MULTILINE,
)
# The summary of pytest cuts messages to the width of the terminal. Some classes tell enough.
CUT = re.compile(
    r"^(?:FAILED|ERROR) \S+ - (?:[\w.]*\.)?(?P<name>(?!(?:Assertion|Key|Name|Import|\w*NotFound|ZeroDivision)Error)\w*)"
    r"(?:: (?P<start>[^\n]+?))?\.\.\.$",
    re.MULTILINE,
)
# IPython shows lines before the failing one, which it marks with an arrow.
FRAME = re.compile(
    r'^[ \t]*(?:\w+[ \t]+)?File "?(?P<file>[^"\n]*?)"?(?:, line |:)(?P<line>\d+)(?:.*\n'
    r"(?:(?:[ \t]*(?:\d+|\(\.\.\.\))(?:[ \t].*)?\n)*-+>[ \t]*\[?\d+(?:\]\([^)\n]*\))?[ \t]+)?"
    r'[ \t]*(?!File "|(?:[\w.]+\.)?\w+(?:Error|Exception|Warning|Violation)(?:: |$))(?P<code>\S.*)$)?',
    re.MULTILINE,
)
ARROW_LINE = re.compile(r"^(?:-+>\s*\d+|>)\s+(?P<code>\S.*)$", re.MULTILINE)  # IPython's and pytest's marks
# IPython names the class above the frames, too; the message below them may have been cut.
HEAD = re.compile(r"^(\w+)[ \t]+Traceback \(most recent call last\)", re.MULTILINE)
OLD_FRAME = re.compile(  # of IPython before version 8, and of Colab
    r"^\[?(?P<file>[^\s\[\]]+\.pyc?)(?:\]\(\S*\))? in (?P<function>\S.*)\n"
    r"(?P<before>(?:[ \t]*(?:\d+|\(\.\.\.\))(?:[ \t].*)?\n)*)(?P<arrow>-+> *\[?(?P<line>\d+))",
    re.MULTILINE,
)
SHORT_FRAME = re.compile(r"^(\S+\.pyx?):(\d+): in (\S+)$", re.MULTILINE)  # of `pytest --tb=short`
PREFIXED = re.compile(r"^(?P<prefix>\S[^\n]*?[ \t])Traceback \(most recent call last\)", re.MULTILINE)
TRACEBACK = re.compile(r"(?<!was:\n)^Traceback \(most recent call last\):?", re.MULTILINE)  # not a quoted one
# Python's words between chained tracebacks; the last one is the error that the user saw.
CHAINED = re.compile(
    r"^(?:The above exception was the direct cause|During handling of the above).*:\s*$", re.MULTILINE
)
WRAPPED = re.compile(r"^(?:[\w.]*\.)?\w+StackTrace: ", re.M)  # JAX once put its class around an error
BOX = re.compile(r"[│╭╮╰╯❱]|─{2,}")  # Rich draws them around a traceback, and wraps the lines inside
LOGGED = re.compile(  # what a launcher or a log puts before each line
    r"^(?:\([\w ]+ pid=\d+\) (?:[A-Z]+ [\d-]+ [\d:.]+ \[[^\]\n]+\] ?)?|[IWEF]\d{4} [\d:.]+ +\d+ \S+\.py:\d+\] |"
    r"\[(?:rank ?)?\d+\](?:<std\w+>)?:? |\d{4}-\d\d-\d\d[ T][\d:.,]+Z? (?:\[?[A-Z]{4,8}\]?:? )?)",
    re.MULTILINE,
)
GROUP = re.compile(r"^ *(?:\| ?|\+[-+]+.*$)", re.MULTILINE)  # what Python draws beside the errors of a group
IN_LIBRARY = re.compile(
    r"[/\\](?:site-packages|dist-packages|python3\.\d+)[/\\]|<frozen|^<string>|^<__array_function__|^\.{3}[/\\]|\.pyx$"
)
IN_JAX = re.compile(  # your own folder may be called jax, too
    r"(?:-packages|^|google3[/\\]third_party[/\\]py)[/\\]?jax(?:lib|_plugins)?[/\\]"
    r"|[/\\]jax[/\\](?:_src|core|api|interpreters|experimental|numpy|lax|lib|__init__)\b|[/\\]jaxlib[/\\]"
)
# Triton's compiler at work for a kernel of Pallas, by the files of a traceback.
OF_PALLAS = re.compile(r"[/\\]jax[/\\]_src[/\\]pallas[/\\].*(?:\n.*[/\\]triton[/\\].*)+$")
# A warning has the place that gave it, and no frames.
JAX_WARNING = re.compile(r"[/\\]jax(?:lib)?[/\\]\S+\.py:\d+: \w*Warning")
OF_JAX = re.compile(r"^jax(?:lib)?\b")  # the name of a class; jaxtyping is another library
JAX_WORDS = re.compile(
    r"(?<![a-z]_)jax(?!typing)|xla|org_tensorflow|\bjit\b|\b_Dim[EP]\w+|\bp?jit\(|tracer|traced|vmap|pytree|stablehlo|\bHLO|PRNG|ShapedArray|sharding|\blax\b|DeviceArray"
    r"|ArrayImpl|custom_[jv][vj]p|cudnn|RESOURCE.EXHAUSTED|\bjnp\b|\bavals?\b|pspec|PartitionSpec|(?:co)?tangent|\bprimals?\b"
    r"|static_arg(?:num|name)s|Non-hashable static|donate_arg(?:num|name)s|\b(?:in|out)_axes\b|axis_name|dimension_numbers|"
    r"\bPallas\b|\b(?:Triton|Mosaic GPU) lowering\b|device_put|\bpmap|"
    r"compute_on|ShapeDtypeStruct|create_device_mesh|make_mesh|mesh_shape|\b(?:in|out)_specs\b|(?:physical|logical) mesh\b|mesh axis name|unreduced|"
    r"PJRT|libtpu|TPU (?:system|initialization|backend)|/dev/(?:vfio|accel)|CoordinationService|RegisterTask|coordination_leader|mps dialect|stopped sending heartbeats|'(?:Lowered|Exported)' object|data type 'V'|'function' object has no attribute '(?:lower|clear_cache|eval_shape)'|checkify|nondiff_argnums|threefry|holomorphic|fully addressable|different trace level|"
    r"Equinox\w+Error|modules that hold variables|shard_map\(|std::bad_cast|PolyShape|"
    rf"\b(?:{'|'.join(name for name in dir(jax.lax) if '_' in name.strip('_') and not name.startswith('_'))})\b",
    re.IGNORECASE,
)
# XLA's own log lines name files of TensorFlow, where XLA began; PyTorch has its own words for errors of cuDNN.
OTHER_LIBRARY = re.compile(
    r"\b(?:torch(?:_xla)?|(?<!org_tensorflow/)tensorflow(?!/(?:compiler(?!/xla/xla_client/)|stream_executor(?!/platform)|tsl)|\.CoordinationService)|keras|numba|pandas|sklearn|pytensor|aesara|onnxruntime"
    r"|_XLAC|elementwise_grad|pytorch/xla|xmp\.spawn|xgboost|lightgbm|dgl|mxnet|tvm|oneflow|cupy(?:_backends)?|sentencepiece\w*|libprotobuf|ray\.exceptions|mujoco\.FatalError)\b"
    r"|ModelProto|cuBLAS failed with status|\[Op:|PyTorch|TORCH_|CUDA_LAUNCH_BLOCKING|CUDA driver API error|ProcessGroupNCCL|cuDNN error: |(?:CUDA|cusolver|cublas|cufft) error: [^\n]* when calling|\{\{node"
    r"|flax\.errors\.(?!html|TraceContext|JaxTransform)"
)
# A folder of yours may be called torch, and so may an environment.
OTHER_FILE = re.compile(
    r"(?:-packages[/\\]|^)(?:torch(?:_xla)?|tensorflow|keras|numba|pandas|sklearn|pytensor|aesara|onnxruntime|xgboost|lightgbm|dgl|mxnet|tvm|cupy|warp|sentencepiece)[/\\](?!src[/\\]backend[/\\]jax[/\\])"
)
# The package of a file, other than JAX and your own.
CELL = re.compile(
    r"^(?:Cell In ?\[|<ipython-input)", re.MULTILINE
)  # IPython names the cells of a notebook so
PACKAGE = re.compile(r"-packages[/\\](?!jax(?:lib|_plugins)?[/\\])([A-Za-z]\w*)[/\\]")
MISSING = re.compile(  # another package than JAX
    r"^(?:E\s+|FAILED \S+ - )?(?:ModuleNotFoundError: No module named|ImportError: cannot import name '\w+' from) '(?!jax(?:lib)?\b[.'])",
    re.MULTILINE,
)
# A public name that JAX, or a module of it, does not have.
MISSING_NAME = re.compile(
    r"module '?(?P<owner>jax(?:\.[a-z_]\w*)*)'? has no attribute '?(?P<attribute>[a-zA-Z]\w*)"
    r"|cannot import name '?(?P<name>[a-zA-Z]\w*)'? from (?:partially initialized module )?'?(?P<source>jax(?:\.[a-z_]\w*)*)(?![\w.])"
    r"|No module named '?(?P<module>jax(?:\.[a-z_]\w*)*)"
)
# Their message is a name that you chose, which may hold "jax".
NAMES_ONLY = re.compile(
    r"^(?:E\s+|FAILED \S+ - )?(?:[\w.]*\.)?(?:KeyError(?!: dtype\()|FileNotFoundError|PermissionError|OSError|ScannerError|ParserError|"
    r"JSONDecodeError|Config\w+(?:Error|Exception))\b|^(?:\S+: line \d+: +\d+ +)?Killed\b",
    re.MULTILINE,
)
# Messages of Python's own: JAX's frames may be hidden, so the words decide.
PLAIN = re.compile(
    r"^(?:E\s+|FAILED \S+ - )?(?:KeyError|ZeroDivisionError|FileNotFoundError|ModuleNotFoundError|KeyboardInterrupt|SyntaxError|"
    r"IndentationError|UnicodeDecodeError|AssertionError|StopIteration|NameError: name|ImportError)\b"
    r"|AttributeError: module '|is out of bounds for axis \d+ with size|index out of range|invalid literal for|could not convert string|values? to unpack|"
    r"'(?:NoneType|dict|list|tuple|str|int|float|module|function)' object |can only concatenate \w+ \(not|"
    r"(?:'(?:NoneType|dict|list|tuple|str|int|float)'(?: and |$)){2}|cannot access local variable",
    re.MULTILINE,
)
# NumPy's own messages. JAX calls NumPy, too: where JAX's frames are hidden, a line that calls JAX alone has them from JAX.
NUMPY = re.compile(
    r"operands could not be broadcast together|with gufunc signature|cannot reshape array of size \d+ into"
    r"|all the input array(?:s must have| dimensions)|shapes \(.*\) and \(.*\) not aligned|could not broadcast input array"
    r"|an inhomogeneous shape after|data type '.*' not understood|int too large to convert to C"
)
JAX_LINE = re.compile(r"^(?!.*\bnp\.).*\b(?:jnp|lax|jax)\.", re.MULTILINE)
# Python's own as well, but it arises in what JAX calls, too.
CALL = re.compile(
    r"takes (?:from \d+ to )?\d+ positional arguments? but|missing \d+ required "
    r"|(?<!error was:\nTypeError: )unhashable type: '(?:list|dict|set)'"
)
ARGUMENT = re.compile(r"depends on the values? of the arguments? (.+?)\.?$", re.MULTILINE)
REFUSED = re.compile(
    r"value is of type <class '([\w.]+)'> and was passed to the function at path (.+?)\.?$", re.M
)
STRING_OR_COMMENT = re.compile(
    r"(?P<prefix>\b[rbfu]{1,2})?(?P<quote>['\"])(?P<inside>(?:\\.|(?!(?P=quote))[^\\\n])*)(?P=quote)|\#.*",
    re.IGNORECASE,
)
FIELD = re.compile(r"(?<!\{)\{[^{}]+")  # what an f-string computes
