"""The code that runs inside the sandbox: standard library only, started without site-packages.

The parent puts the folder above this package on the path of a fresh interpreter and runs `inside.zygote.main`. Nothing
here may import the rest of sweetrl.
"""
