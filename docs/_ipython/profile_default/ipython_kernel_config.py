"""How the kernels of the pages behave; read by every kernel that the build starts."""

c = get_config()  # noqa: F821 -- defined by IPython

c.InteractiveShell.xmode = "Plain"  # frames without source context; the build keeps the line and the message
c.HistoryManager.enabled = False  # parallel kernels would share one database
c.IPKernelApp.log_level = 40  # a local kernel over TCP warns at each start
# startup/figures.py draws them for the site; the pictures are for the notebooks to take away.
c.InlineBackend.figure_formats = {"retina"}
c.InlineBackend.print_figure_kwargs = {"facecolor": "white", "bbox_inches": None}
