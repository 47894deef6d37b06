"""(package docstring follows with its first module)"""
